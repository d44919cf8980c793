//! The state of a queue, and the functions that concern all of it. Each verb has a file of its own.

use longshore_model::{Counters, EndpointNo, Millis};
use longshore_planted::{Bug, planted};

use crate::deferred::DeferredJobs;
use crate::ended::EndedJobs;
use crate::idempotency::IdempotencyIndex;
use crate::index::Index;
use crate::jobs::Jobs;
use crate::ready_queue::ReadyQueue;
use crate::workers::Workers;
use crate::{Effects, QueueSettings, Signal};

/// The largest number of jobs that one verb expires, cancels or deletes. Bounds the size of one commit: commits of other
/// queues of the shard wait for it, three times in the life of a job.
pub(crate) const SLICE_JOBS_MAX: usize = 256;

/// All jobs of one endpoint, and the workers that take them. The endpoint's actor owns the only one.
///
/// A verb adds what it caused to an [`Effects`], which the caller drains and reuses. The caller holds a verb's result until
/// the commit of its changes is durable. The time that verbs get never goes back.
///
/// A verb panics if an invariant is broken (`invariants.rs`). The caller then drops the queue and restores it from rows.
#[derive(Debug)]
pub struct Queue {
    pub(crate) endpoint: EndpointNo,
    pub(crate) settings: QueueSettings,

    // Durable: the rows in the store have the same content.
    pub(crate) jobs: Jobs,
    pub(crate) counters: Counters,
    /// The counters as they were restored, or last returned by [`Queue::take_counters`].
    pub(crate) taken_counters: Counters,

    // Derived: computed from the rows by `restore`.
    /// Queued jobs that a take can deliver.
    pub(crate) ready: ReadyQueue,
    /// Purged jobs whose rows are still stored as queued.
    pub(crate) purging: ReadyQueue,
    /// The time of each job's timeout or deletion: at most one entry per job, see `transitions::deadline`.
    pub(crate) deadlines: Index<Millis>,
    pub(crate) idempotency: IdempotencyIndex,
    /// Jobs that failed, timed out or were cancelled.
    pub(crate) ended: EndedJobs,
    /// The number of running jobs.
    pub(crate) running: u64,
    /// The sequence number of the last submit; at most `counters.reserved_seq`.
    pub(crate) last_seq: u64,
    /// The lowest position in the queue that was assigned. A requeued job gets the one below.
    pub(crate) order_first: i64,
    /// The highest position in the queue that was assigned. A submitted job gets the one above.
    pub(crate) order_last: i64,
    /// The latest `enqueued_at` of all jobs. A purge covers it, even if the clock was set back across a restart.
    pub(crate) enqueued_last: Millis,

    // Volatile: lost at a restart.
    pub(crate) workers: Workers,
    /// Queued jobs that are not in `ready`, because their input could not be read.
    pub(crate) deferred: DeferredJobs,
    /// The slot that [`Queue::check_sample`] checks next.
    pub(crate) next_sample: u32,
}

impl Queue {
    /// Returns a queue without jobs and workers. `counters` are the stored ones, or the default for a new endpoint.
    pub fn new(endpoint: EndpointNo, settings: QueueSettings, counters: Counters) -> Self {
        Self {
            endpoint,
            settings,
            last_seq: counters.reserved_seq,
            counters,
            taken_counters: counters,
            jobs: Jobs::default(),
            ready: ReadyQueue::default(),
            purging: ReadyQueue::default(),
            deadlines: Index::default(),
            idempotency: IdempotencyIndex::default(),
            ended: EndedJobs::default(),
            running: 0,
            order_first: 0,
            order_last: 0,
            enqueued_last: Millis(0),
            workers: Workers::default(),
            deferred: DeferredJobs::default(),
            next_sample: 0,
        }
    }

    /// Returns the counters if they changed since the last call, else `None`. The caller writes them in the same commit as
    /// the rows of the verbs since then: they reserve the sequence numbers of those rows.
    pub fn take_counters(&mut self) -> Option<Counters> {
        assert!(self.last_seq <= self.counters.reserved_seq, "every sequence number in use is reserved");
        let is_reserved = self.counters.reserved_seq != self.taken_counters.reserved_seq;
        if self.counters == self.taken_counters || (!is_reserved && planted(Bug::CountersNotKept)) {
            return None;
        }
        self.taken_counters = self.counters;
        Some(self.counters)
    }

    /// When to call [`Queue::tick`] next. A time that has passed means immediately; `None` means not before another verb.
    pub fn next_deadline(&self) -> Option<Millis> {
        if !self.purging.is_empty() {
            return Some(Millis(0));
        }
        let job = self.deadlines.first().map(|(at, _)| at);
        job.into_iter().chain(self.workers.next_check()).chain(self.deferred.next_retry()).min()
    }

    /// Replaces the settings. The lease applies to known workers immediately; a retention or timeout applies to jobs that
    /// end or are submitted later.
    pub fn configure(&mut self, settings: QueueSettings, out: &mut Effects) {
        self.settings = settings;
        self.workers.schedule_all(settings.lease_ms);
        if !self.ready.is_empty() && !settings.paused {
            out.signals.push(Signal::JobReady);
        }
        out.signals.push(Signal::LoadChanged);
    }
}
