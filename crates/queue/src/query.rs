//! Queries of a queue. None of them changes it.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::iter::Peekable;
use core::net::IpAddr;

use longshore_model::{Counters, JobId, JobRow, JobState, KeyId, Millis, WorkerId, WorkerPhase};

use crate::Queue;
use crate::ended::EndedJobs;
use crate::index::Index;
use crate::jobs::Slot;
use crate::packed::PackedRow;
use crate::ready_queue::ReadyQueue;

/// The largest number of jobs that one page examines. A page with fewer matches is shorter than its limit.
const PAGE_SCAN_MAX: usize = 10_000;
/// The largest number of queued and running jobs that a page collects and sorts.
const COLLECTED_MAX: u64 = 2_000;

/// One page of a list of jobs.
#[derive(Debug, Default)]
pub struct Page {
    /// The jobs that match, in the order of the list. May be empty although a later page is not.
    pub jobs: Vec<JobRow>,
    /// The id to continue from; `None` on the last page.
    pub cursor: Option<JobId>,
    /// The number of jobs that were examined for this page.
    pub examined: u64,
    /// The number of jobs of the endpoint, in any state.
    pub of: u64,
}

/// Conditions of a list of jobs. A job has to meet all that are set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobConditions {
    /// One of these states; empty for any.
    pub states: Vec<JobState>,
    /// Submitted at this time or later.
    pub since: Option<Millis>,
    /// Submitted before this time.
    pub until: Option<Millis>,
    /// The present or last worker.
    pub worker: Option<WorkerId>,
    /// The id of the API key that submitted the job.
    pub key: Option<KeyId>,
    /// The id begins or ends with this text.
    pub id_part: Option<String>,
    /// Waited for this time at least, in ms. A queued job counts until now.
    pub delay_ms_min: Option<u64>,
    /// Ran for this time at least, in ms.
    pub execution_ms_min: Option<u64>,
    /// Whether the job has to have been retried automatically at least once.
    pub is_retried: bool,
    /// Last started at this time or later; a job that has not started counts from its submit.
    pub started_since: Option<Millis>,
    /// Last started before this time; a job that has not started counts from its submit.
    pub started_until: Option<Millis>,
    /// Whether the list begins with the oldest job.
    pub is_ascending: bool,
}

/// The numbers of an endpoint's jobs by their state, as clients see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    counts: [u64; JobState::ALL.len()],
}

impl StateCounts {
    /// The number of jobs in this state.
    pub fn of(&self, state: JobState) -> u64 {
        self.counts[state as usize]
    }
}

impl JobConditions {
    /// Whether a visible row meets the conditions at `now`.
    fn are_met(&self, row: &JobRow, now: Millis) -> bool {
        let delay_ms = match row.state {
            JobState::InQueue => now.since(row.enqueued_at),
            _ => row.delay_ms(),
        };
        let started_at = if row.ran() && !row.never_taken { row.started_at } else { row.created_at };
        (self.states.is_empty() || self.states.contains(&row.state))
            && self.since.is_none_or(|since| row.created_at >= since)
            && self.until.is_none_or(|until| row.created_at < until)
            && self.started_since.is_none_or(|since| started_at >= since)
            && self.started_until.is_none_or(|until| started_at < until)
            && (self.worker.is_none() || row.worker == self.worker)
            && (self.key.is_none() || row.submitter.key == self.key)
            && self.delay_ms_min.is_none_or(|min| delay_ms >= min)
            && self.execution_ms_min.is_none_or(|min| row.execution_ms(now) >= min)
            && (!self.is_retried || row.retries > 0)
            && self.id_part.as_deref().is_none_or(|part| {
                let id = row.id.to_string();
                id.starts_with(part) || id.ends_with(part)
            })
    }

    /// Whether every row meets them.
    fn is_empty(&self) -> bool {
        *self == Self { is_ascending: self.is_ascending, ..Self::default() }
    }
}

/// The load of an endpoint, from which the fleet plans the number of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLoad {
    /// The number of queued jobs. Purged jobs do not count.
    pub queued: u64,
    /// The number of queued jobs that are not of low priority. Only these cause workers to start.
    pub queued_normal: u64,
    /// The number of running jobs.
    pub running: u64,
    /// When the job that waits longest entered the queue, of those that are not of low priority; `None` if there is none.
    pub oldest_normal_since: Option<Millis>,
}

/// The load of one worker that the queue knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLoad {
    /// The id of the worker.
    pub id: WorkerId,
    /// The phase of the worker. A draining worker may run jobs.
    pub phase: WorkerPhase,
    /// Whether our launcher runs the worker. External workers bring a worker token.
    pub managed: bool,
    /// The number of jobs that the worker runs.
    pub running: u32,
    /// When the worker became idle. Not meaningful while it runs a job.
    pub idle_since: Millis,
    /// When the worker last sent a take; its first contact before the first one.
    pub last_take: Millis,
    /// The time of the worker's last request.
    pub last_contact: Millis,
    /// The number of the worker's reports that counted since it became known.
    pub jobs_done: u64,
    /// The address that its last take came from, as far as it is known.
    pub address: Option<IpAddr>,
}

/// The entries of lists that are each in order, in one order: an entry that comes `first` before another one.
fn merged<'a, I: Iterator<Item = (JobId, Slot)> + 'a>(
    mut lists: Vec<Peekable<I>>,
    first: fn(&JobId, &JobId) -> bool,
) -> impl Iterator<Item = Slot> + 'a {
    core::iter::from_fn(move || {
        let mut next: Option<(usize, JobId)> = None;
        for (at, list) in lists.iter_mut().enumerate() {
            if let Some((id, _)) = list.peek()
                && next.is_none_or(|(_, known)| first(id, &known))
            {
                next = Some((at, *id));
            }
        }
        lists[next?.0].next().map(|(_, slot)| slot)
    })
}

impl Queue {
    /// The row as clients see it: `None` once expired, `CANCELLED` once purged, even before the stored row changes.
    ///
    /// A job expires at a time of the clock, before a tick deletes its row. So an expired job can become visible again if
    /// the clock is set back across a restart.
    pub fn find_visible(&self, id: JobId, now: Millis) -> Option<JobRow> {
        let slot = self.jobs.find(id)?;
        (now < self.jobs[slot].delete_at()).then(|| self.visible_row(slot))
    }

    /// The position of a queued job, 1 is next; `None` for any other job and an unknown id.
    pub fn position(&self, id: JobId) -> Option<u64> {
        let row = &self.jobs[self.jobs.find(id)?];
        let is_queued = self.visible_state(row) == JobState::InQueue;
        is_queued.then(|| self.ready.len_before(row.order) + self.deferred.jobs.len_before(row.order) + 1)
    }

    /// When a queued job is ready again whose input could not be read; `None` if it is ready, and for any other job.
    pub fn deferred_until(&self, id: JobId) -> Option<Millis> {
        self.deferred.retry_at(self.jobs.find(id)?)
    }

    /// The stored row of a job, even if the job has expired; `None` for an unknown id.
    pub fn find_stored(&self, id: JobId) -> Option<JobRow> {
        self.jobs.find(id).map(|slot| self.jobs.row(slot))
    }

    /// The row as clients see it, provided that the job has not expired.
    pub(crate) fn visible_row(&self, slot: Slot) -> JobRow {
        let mut row = self.jobs.row(slot);
        if self.is_purged(&self.jobs[slot]) {
            row.state = JobState::Cancelled;
            row.finished_at = self.counters.purged_until;
        }
        if row.state == JobState::InProgress {
            row.progress = self.jobs.progress(slot).map(Into::into);
        }
        row
    }

    fn visible_state(&self, row: &PackedRow) -> JobState {
        if self.is_purged(row) { JobState::Cancelled } else { row.state() }
    }

    /// At most `limit` visible jobs that meet the conditions, newest first with ids below `from` (`None`: all), or oldest
    /// first with ids above it. Examines at most 10 000 jobs; only those in the wanted states, if these are rare ones.
    pub fn page(&self, conditions: &JobConditions, limit: usize, from: Option<JobId>, now: Millis) -> Page {
        let mut page = Page { of: self.len(), ..Page::default() };
        let is_any = conditions.is_empty();
        let mut last = None;
        for (examined, slot) in self.candidates(conditions, from).enumerate() {
            if page.jobs.len() == limit || examined == PAGE_SCAN_MAX {
                page.cursor = last;
                break;
            }
            page.examined += 1;
            let row = &self.jobs[slot];
            last = Some(row.id);
            let may_match =
                conditions.states.is_empty() || conditions.states.contains(&self.visible_state(row));
            if now >= row.delete_at() || !may_match {
                continue;
            }
            let row = self.visible_row(slot);
            if is_any || conditions.are_met(&row, now) {
                page.jobs.push(row);
            }
        }
        page
    }

    /// The jobs that may meet the conditions, in the order of the list.
    fn candidates(
        &self,
        conditions: &JobConditions,
        from: Option<JobId>,
    ) -> Box<dyn Iterator<Item = Slot> + '_> {
        if let Some(few) = self.few_active(conditions, from) {
            return Box::new(few.into_iter().map(|(_, slot)| slot));
        }
        match (self.listed(conditions), conditions.is_ascending) {
            (Some(listed), false) => {
                let lists = listed.into_iter().map(|list| list.descending(from).peekable()).collect();
                Box::new(merged(lists, |one, other| one > other))
            }
            (Some(listed), true) => {
                let lists = listed.into_iter().map(|list| list.ascending(from).peekable()).collect();
                Box::new(merged(lists, |one, other| one < other))
            }
            (None, false) => Box::new(self.jobs.newest_first(from)),
            (None, true) => Box::new(self.jobs.oldest_first(from)),
        }
    }

    /// The queued or running jobs, in the order of the list, if no others are wanted and they are few: among many ended jobs, or
    /// running ones behind a long queue, they are not looked for.
    fn few_active(&self, conditions: &JobConditions, from: Option<JobId>) -> Option<Vec<(JobId, Slot)>> {
        let wants = |state| conditions.states.contains(&state);
        let is_active = |state: &JobState| matches!(state, JobState::InQueue | JobState::InProgress);
        let queued = if wants(JobState::InQueue) { self.queued() } else { 0 };
        let running = if wants(JobState::InProgress) { self.running } else { 0 };
        let has_others = conditions.states.is_empty() || !conditions.states.iter().all(is_active);
        if has_others || queued + running > COLLECTED_MAX {
            return None;
        }
        let held = self.workers.iter().flat_map(|(_, worker)| worker.held.iter().map(|held| held.slot));
        let held = held.filter(|_| running > 0);
        let lists = [&self.ready, &self.deferred.jobs].into_iter().filter(|_| queued > 0);
        let slots = held.chain(lists.flat_map(ReadyQueue::slots));
        let jobs = slots.map(|slot| (self.jobs[slot].id, slot));
        let mut jobs: Vec<_> = if conditions.is_ascending {
            jobs.filter(|(id, _)| from.is_none_or(|from| *id > from)).collect()
        } else {
            jobs.filter(|(id, _)| from.is_none_or(|from| *id < from)).collect()
        };
        jobs.sort_unstable();
        if !conditions.is_ascending {
            jobs.reverse();
        }
        Some(jobs)
    }

    /// The lists that have every job in the wanted states; `None` if there are none.
    fn listed(&self, conditions: &JobConditions) -> Option<Vec<&Index<JobId>>> {
        let states = &conditions.states;
        // A purged job is shown as cancelled before it is listed.
        let is_hidden = states.contains(&JobState::Cancelled) && !self.purging.is_empty();
        if states.is_empty() || is_hidden {
            return None;
        }
        let wanted = EndedJobs::STATES.into_iter().filter(|state| states.contains(state));
        let lists: Vec<_> = wanted.filter_map(|state| self.ended.of(state)).collect();
        states.iter().all(|state| self.ended.of(*state).is_some()).then_some(lists)
    }

    /// The numbers of jobs by state. Expired jobs count until they are deleted.
    pub fn state_counts(&self) -> StateCounts {
        let mut counts = [0; JobState::ALL.len()];
        counts[JobState::InQueue as usize] = self.queued();
        counts[JobState::InProgress as usize] = self.running;
        for state in EndedJobs::STATES {
            counts[state as usize] = self.ended.of(state).map_or(0, Index::len);
        }
        counts[JobState::Cancelled as usize] += self.purging.len();
        // The other ones.
        let others: u64 = counts.iter().sum();
        counts[JobState::Completed as usize] = self.len().saturating_sub(others);
        StateCounts { counts }
    }

    /// The cumulative counters. A purged job counts as cancelled when a tick writes its row.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The number of jobs in any state, including expired ones that are not deleted yet.
    pub fn len(&self) -> u64 {
        self.jobs.len()
    }

    /// Whether the queue has no job in any state.
    pub fn is_empty(&self) -> bool {
        self.jobs.len() == 0
    }

    /// The number of queued jobs, ready or deferred. Purged jobs do not count.
    pub fn queued(&self) -> u64 {
        self.ready.len() + self.deferred.jobs.len()
    }

    /// Size of the input of the job that is delivered next, in bytes; `None` if no job is ready.
    pub fn next_input_bytes(&self) -> Option<u32> {
        self.ready.first().map(|slot| self.jobs[slot].input_bytes())
    }

    /// The load of the endpoint.
    pub fn load(&self) -> QueueLoad {
        let queues = [&self.ready, &self.deferred.jobs];
        let was_taken = |slot| !self.jobs[slot].never_taken();
        let oldest = queues.into_iter().flat_map(|queue| queue.oldest_normal(was_taken));
        QueueLoad {
            queued: self.queued(),
            queued_normal: self.ready.len_normal() + self.deferred.jobs.len_normal(),
            running: self.running,
            oldest_normal_since: oldest.map(|slot| self.jobs[slot].enqueued_at()).min(),
        }
    }

    /// The load of every worker that the queue knows, by worker id.
    pub fn worker_loads(&self) -> impl Iterator<Item = WorkerLoad> {
        self.workers.iter().map(|(id, worker)| WorkerLoad {
            id: id.clone(),
            phase: match () {
                () if worker.draining => WorkerPhase::Draining,
                () if !worker.held.is_empty() => WorkerPhase::Running,
                () if worker.has_taken => WorkerPhase::Idle,
                () => WorkerPhase::Initializing,
            },
            managed: worker.managed,
            running: worker.held.len() as u32,
            idle_since: worker.idle_since,
            last_take: worker.last_take,
            last_contact: worker.last_contact,
            jobs_done: worker.jobs_done,
            address: worker.address,
        })
    }

    /// When a worker last sent a take; `None` if none did since the queue was restored.
    pub fn last_take(&self) -> Option<Millis> {
        self.workers.last_take
    }

    /// The jobs that a worker runs; empty for an unknown worker.
    pub fn jobs_of(&self, worker: &WorkerId) -> Vec<JobId> {
        let held = self.workers.get(worker).map_or(&[][..], |worker| &worker.held);
        held.iter().map(|held| self.jobs.row(held.slot).id).collect()
    }

    /// The number of workers that the queue knows.
    pub fn known_workers(&self) -> u32 {
        self.workers.len() as u32
    }

    /// The number of workers that run at least one job.
    pub fn running_workers(&self) -> u32 {
        self.workers.busy()
    }

    /// Whether the worker is known and draining.
    pub fn is_draining(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.draining)
    }

    /// Whether the worker is known and managed: our launcher runs it.
    pub fn is_managed(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|worker| worker.managed)
    }
}
