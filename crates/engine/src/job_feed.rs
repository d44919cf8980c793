//! The changes of an endpoint's jobs since they were last taken, for readers of events.
//!
//! Actors add the changes of a round when its commit is durable. They add nothing while no reader is there, so that a
//! server without readers pays one relaxed load for each round.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use longshore_model::{JobId, JobRow, JobState, Millis, WorkerId};
use longshore_queue::StateCounts;

/// The largest number of jobs in one [`JobChanges`].
pub(crate) const CHANGED_MAX: usize = 100;

/// Whether anyone reads the changes of jobs. One per engine.
#[derive(Debug, Default)]
pub(crate) struct FeedSwitch {
    is_on: AtomicBool,
}

impl FeedSwitch {
    pub(crate) fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Relaxed: a round that misses the switch was before the reader's first query, whose reply waits for the round.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

/// The state of one job after its last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedJob {
    /// The id of the job.
    pub id: JobId,
    /// When the job changed.
    pub at: Millis,
    /// The row of the job; `None` if the job was deleted.
    pub row: Option<Box<JobRow>>,
}

/// The numbers of an endpoint's jobs after a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// The number of queued jobs. Purged jobs do not count.
    pub queued: u64,
    /// The number of running jobs.
    pub running: u64,
    /// Jobs that were completed since the endpoint was created.
    pub completed: u64,
    /// Jobs that failed or timed out since the endpoint was created.
    pub failed: u64,
    /// Jobs that were cancelled or purged since the endpoint was created.
    pub cancelled: u64,
    /// Automatic retries and client retries since the endpoint was created.
    pub retried: u64,
    /// The jobs that are there now, by state.
    pub states: StateCounts,
}

/// The changes of one endpoint's jobs between two calls of
/// [`EndpointHandle::take_job_changes`](crate::EndpointHandle::take_job_changes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobChanges {
    /// The numbers after the last change.
    pub counts: JobCounts,
    /// The jobs that changed last, the last one first, at most 100. Each job is in it once.
    pub changed: Vec<ChangedJob>,
    /// The number of changes of other jobs. After a reload of the queue, each of its jobs counts as changed.
    pub more: u64,
}

/// The changes of one round, held until its commit is durable.
#[derive(Debug, Default)]
pub(crate) struct RoundChanges {
    pub(crate) changed: Vec<ChangedJob>,
    pub(crate) counts: JobCounts,
}

impl RoundChanges {
    /// Adds a job that was written.
    pub(crate) fn put(&mut self, at: Millis, row: &JobRow) {
        self.changed.push(ChangedJob { id: row.id, at, row: Some(Box::new(row.clone())) });
    }

    /// Adds a job that was deleted.
    pub(crate) fn delete(&mut self, at: Millis, id: JobId) {
        self.changed.push(ChangedJob { id, at, row: None });
    }
}

/// The changes of one endpoint that were not taken yet: at most 100 jobs, and a number.
#[derive(Debug, Default)]
pub(crate) struct JobFeed {
    pending: Mutex<Option<Pending>>,
}

#[derive(Debug, Default)]
struct Pending {
    counts: JobCounts,
    /// The jobs that changed last, by the number of their change.
    changed: BTreeMap<u64, ChangedJob>,
    /// The number of each job's change in `changed`.
    numbers: HashMap<JobId, u64>,
    /// The number of the last change.
    last: u64,
    more: u64,
}

impl JobFeed {
    /// Adds the changes of a durable round.
    pub(crate) fn add(&self, round: RoundChanges) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = pending.get_or_insert_default();
        pending.counts = round.counts;
        for job in round.changed {
            pending.put(job);
        }
    }

    /// Adds this number of changes of unknown jobs.
    pub(crate) fn add_unknown(&self, counts: JobCounts, changes: u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = pending.get_or_insert_default();
        pending.counts = counts;
        pending.more += changes;
    }

    /// Returns the changes since the last call; `None` if no round changed anything.
    pub(crate) fn take(&self) -> Option<JobChanges> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let changed = pending.changed.into_values().rev().collect();
        Some(JobChanges { counts: pending.counts, changed, more: pending.more })
    }
}

impl Pending {
    fn put(&mut self, job: ChangedJob) {
        self.last += 1;
        if let Some(before) = self.numbers.insert(job.id, self.last) {
            self.changed.remove(&before);
        }
        self.changed.insert(self.last, job);
        if self.changed.len() > CHANGED_MAX
            && let Some((_, oldest)) = self.changed.pop_first()
        {
            self.numbers.remove(&oldest.id);
            self.more += 1;
        }
    }
}

impl ChangedJob {
    /// The state of the job; `None` if the job was deleted.
    pub fn state(&self) -> Option<JobState> {
        self.row.as_ref().map(|row| row.state)
    }

    /// The present or last worker of the job.
    pub fn worker(&self) -> Option<&WorkerId> {
        self.row.as_ref()?.worker.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use longshore_model::{EndpointNo, JobKey};

    use super::*;

    fn round(jobs: &[u64], completed: u64) -> RoundChanges {
        let mut round = RoundChanges::default();
        for number in jobs {
            let id = JobId::mint(Millis(*number), 0, false);
            let key = JobKey { endpoint: EndpointNo(1), seq: *number };
            round.put(Millis(completed), &JobRow::queued(key, id, Millis(*number)));
        }
        round.counts.completed = completed;
        round
    }

    #[test]
    fn a_job_that_changes_twice_is_there_once_in_its_last_state() {
        let feed = JobFeed::default();
        feed.add(round(&[1, 2], 1));
        feed.add(round(&[1], 2));
        let taken = feed.take().unwrap();
        let seen: Vec<_> = taken.changed.iter().map(|job| (job.id, job.at)).collect();
        let id = |number| JobId::mint(Millis(number), 0, false);
        assert_eq!(seen, [(id(1), Millis(2)), (id(2), Millis(1))]);
        assert_eq!((taken.counts.completed, taken.more), (2, 0));
        assert_eq!(feed.take(), None);
    }

    #[test]
    fn the_jobs_that_changed_first_are_only_counted() {
        let feed = JobFeed::default();
        feed.add(round(&(1..=250).collect::<Vec<_>>(), 0));
        let taken = feed.take().unwrap();
        assert_eq!((taken.changed.len(), taken.more), (CHANGED_MAX, 150));
        assert_eq!(taken.changed[0].id, JobId::mint(Millis(250), 0, false));
    }
}
