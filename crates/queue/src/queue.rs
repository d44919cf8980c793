//! The queue's state, and what concerns all of it. Each verb has a file of its own.

use longshore_model::{Counters, EndpointNo, Millis};
use longshore_planted::{Bug, planted};

use crate::aside::Aside;
use crate::idempotent::Idempotent;
use crate::index::Index;
use crate::jobs::Jobs;
use crate::ready_queue::ReadyQueue;
use crate::workers::Workers;
use crate::{Effects, QueueSettings, Signal};

/// Deadlines, purged jobs or demolished jobs that one verb handles at most, so that a million of them never
/// make one enormous commit: everybody else's commits go between theirs, and take as long as they are big. While a million
/// jobs expired, 1 000 jobs a second of another queue took up to 0.2 s with slices of 1 024, and take 10 ms with these.
pub(crate) const SLICE_JOBS_MAX: usize = 256;

/// One endpoint's queue.
///
/// Its verbs take the time, which never goes back between them, and add what they cause to an [`Effects`] that the caller
/// empties and keeps for its room: every job comes this way three times. A verb's result is held until the commit that
/// covers its changes. A verb panics where an invariant is broken (`invariants.rs`); the queue is then to be dropped.
#[derive(Debug)]
pub struct Queue {
    pub(crate) endpoint: EndpointNo,
    pub(crate) settings: QueueSettings,

    // Durable: exactly the rows that the store holds.
    pub(crate) jobs: Jobs,
    pub(crate) counters: Counters,
    /// The counters as they were last taken to be written, or loaded.
    pub(crate) taken_counters: Counters,

    // Derived from the rows when they are loaded.
    pub(crate) ready: ReadyQueue,
    /// Queued when a purge came, not yet written as cancelled.
    pub(crate) purging: ReadyQueue,
    /// One entry per job: when something must happen to it by itself.
    pub(crate) deadlines: Index<Millis>,
    pub(crate) idempotent: Idempotent,
    pub(crate) running: u64,
    pub(crate) last_seq: u64,
    pub(crate) order_first: i64,
    pub(crate) order_last: i64,
    /// The latest time at which any job entered the queue: what a purge must reach to cover them all, even
    /// after a restart with a clock that stepped back.
    pub(crate) enqueued_last: Millis,

    // Volatile: gone with a restart.
    pub(crate) workers: Workers,
    /// Jobs that wait and are not in `ready`.
    pub(crate) aside: Aside,
    /// Where in the slab [`Queue::check_sample`] goes on.
    pub(crate) next_sample: u32,
}

impl Queue {
    /// An empty queue.
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
            idempotent: Idempotent::default(),
            running: 0,
            order_first: 0,
            order_last: 0,
            enqueued_last: Millis(0),
            workers: Workers::default(),
            aside: Aside::default(),
            next_sample: 0,
        }
    }

    /// The counters, if they have changed since the last call. They belong into the same commit as the rows of the verbs
    /// since then: a job's sequence number is reserved by them.
    pub fn take_counters(&mut self) -> Option<Counters> {
        assert!(self.last_seq <= self.counters.reserved_seq, "every sequence number in use is reserved");
        let is_reserved = self.counters.reserved_seq != self.taken_counters.reserved_seq;
        if self.counters == self.taken_counters || (!is_reserved && planted(Bug::CountersNotKept)) {
            return None;
        }
        self.taken_counters = self.counters;
        Some(self.counters)
    }

    /// When [`Queue::tick`] has something to do next; none means never, a time in the past means at once.
    pub fn next_deadline(&self) -> Option<Millis> {
        if !self.purging.is_empty() {
            return Some(Millis(0));
        }
        let job = self.deadlines.first().map(|(at, _)| at);
        job.into_iter().chain(self.workers.next_check()).chain(self.aside.next_return()).min()
    }

    /// Goes by other settings from now on.
    pub fn configure(&mut self, settings: QueueSettings, out: &mut Effects) {
        self.settings = settings;
        self.workers.schedule_all(settings.lease_ms);
        if !self.ready.is_empty() && !settings.paused {
            out.signals.push(Signal::JobReady);
        }
        out.signals.push(Signal::LoadChanged);
    }
}
