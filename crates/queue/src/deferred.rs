//! Deferred jobs: queued jobs that are not delivered before a retry time, because their input could not be read from the
//! disk.
//!
//! A deferred job keeps its position in the queue. Volatile: after a restart every queued job is ready.

use alloc::collections::{BTreeMap, BTreeSet};

use longshore_model::Millis;

use crate::jobs::Slot;
use crate::ready_queue::ReadyQueue;

/// The delay after the first failed read of an input, in ms. It doubles with each further failure.
const DELAY_MS_MIN: u64 = 1_000;
/// The longest delay after a failed read, in ms.
const DELAY_MS_MAX: u64 = 30_000;

/// The deferred jobs, and the number of failed reads of each job.
#[derive(Debug, Default)]
pub(crate) struct DeferredJobs {
    /// The deferred jobs by their position in the queue.
    pub(crate) jobs: ReadyQueue,
    /// The deferred jobs by their retry time.
    by_time: BTreeSet<(Millis, Slot)>,
    /// The retry time of each deferred job.
    retry_at: BTreeMap<Slot, Millis>,
    /// Failed reads per job, at least 1. An entry stays when the job is ready again, until the job is terminal or deleted.
    failures: BTreeMap<Slot, u32>,
}

impl DeferredJobs {
    /// Whether no job has an entry in `failures`, so none is deferred. Cheap: the usual case on a good disk.
    pub(crate) fn is_unused(&self) -> bool {
        self.failures.is_empty()
    }

    /// Adds a queued job that is not deferred, and counts one more failed read of it.
    pub(crate) fn insert(&mut self, low_priority: bool, order: i64, slot: Slot, now: Millis) {
        let failures = self.failures.entry(slot).or_default();
        let doublings = (*failures).min(u64::BITS - 1);
        *failures = failures.saturating_add(1);
        let delay_ms = DELAY_MS_MIN.saturating_mul(1 << doublings).min(DELAY_MS_MAX);
        self.jobs.insert(low_priority, order, slot);
        self.retry_at.insert(slot, now + delay_ms);
        self.by_time.insert((now + delay_ms, slot));
    }

    /// Whether the job is deferred.
    pub(crate) fn contains(&self, low_priority: bool, order: i64, slot: Slot) -> bool {
        self.retry_at.contains_key(&slot) && self.jobs.contains(low_priority, order, slot)
    }

    /// When the job is ready again; `None` if it is not deferred.
    pub(crate) fn retry_at(&self, slot: Slot) -> Option<Millis> {
        self.retry_at.get(&slot).copied()
    }

    /// Removes the job and returns whether it was deferred. Its number of failed reads stays.
    pub(crate) fn remove(&mut self, low_priority: bool, order: i64, slot: Slot) -> bool {
        let Some(at) = self.retry_at.remove(&slot) else { return false };
        self.by_time.remove(&(at, slot));
        assert!(self.jobs.remove(low_priority, order, slot), "a deferred job is listed by its position");
        true
    }

    /// Resets the number of failed reads of a job that is terminal or deleted: its slot may get another job.
    pub(crate) fn reset_failures(&mut self, slot: Slot) {
        self.failures.remove(&slot);
    }

    /// Moves every deferred job to `other`.
    pub(crate) fn append_to(&mut self, other: &mut ReadyQueue) {
        self.by_time.clear();
        self.retry_at.clear();
        other.append(&mut self.jobs);
    }

    /// The earliest retry time; `None` if no job is deferred.
    pub(crate) fn next_retry(&self) -> Option<Millis> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// A job whose retry time has passed, the earliest one; `None` if there is none. The job stays deferred.
    pub(crate) fn first_due(&self, now: Millis) -> Option<Slot> {
        self.by_time.first().filter(|(at, _)| *at <= now).map(|(_, slot)| *slot)
    }
}
