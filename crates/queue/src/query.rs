//! Queries of a queue. None of them changes it.

use alloc::vec::Vec;

use longshore_model::{Counters, JobId, JobRow, JobState, Millis, WorkerId, WorkerPhase};

use crate::Queue;
use crate::jobs::Slot;
use crate::packed::PackedRow;

/// The largest number of jobs that one page examines. A page with fewer matches is shorter than its limit.
const PAGE_SCAN_MAX: usize = 10_000;

/// One page of a list of jobs.
#[derive(Debug, Default)]
pub struct Page {
    /// The jobs that match, newest first. May be empty although a later page is not.
    pub jobs: Vec<JobRow>,
    /// The id to continue before; `None` on the last page.
    pub cursor: Option<JobId>,
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
    /// When the first queued job that is not of low priority entered the queue; `None` if there is none.
    pub first_normal_since: Option<Millis>,
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
        row
    }

    fn visible_state(&self, row: &PackedRow) -> JobState {
        if self.is_purged(row) { JobState::Cancelled } else { row.state() }
    }

    /// At most `limit` visible jobs, newest first, in `state` (`None`: any) and with ids below `before` (`None`: all).
    /// Examines at most 10 000 jobs.
    pub fn page(&self, state: Option<JobState>, limit: usize, before: Option<JobId>, now: Millis) -> Page {
        let mut page = Page::default();
        let mut last = None;
        for (scanned, slot) in self.jobs.newest_first(before).enumerate() {
            if page.jobs.len() == limit || scanned == PAGE_SCAN_MAX {
                page.cursor = last;
                break;
            }
            let row = &self.jobs[slot];
            last = Some(row.id);
            if now < row.delete_at() && state.is_none_or(|state| self.visible_state(row) == state) {
                page.jobs.push(self.visible_row(slot));
            }
        }
        page
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
        let first_normal = queues.iter().filter_map(|queue| queue.first_normal()).min();
        QueueLoad {
            queued: self.queued(),
            queued_normal: self.ready.len_normal() + self.deferred.jobs.len_normal(),
            running: self.running,
            first_normal_since: first_normal.map(|(_, slot)| self.jobs[slot].enqueued_at()),
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
        })
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
