//! The machine: its state, and the way of every command through it.

use longshore_model::{Counters, EndpointNo, Millis};
use longshore_planted::{Bug, planted};

use crate::aside::Aside;
use crate::idempotent::Idempotent;
use crate::index::Index;
use crate::jobs::Jobs;
use crate::ready_queue::ReadyQueue;
use crate::workers::Workers;
use crate::{Change, Command, Effects, QueueSettings, Reply, Signal};

/// Deadlines, purged jobs or demolished jobs that one command handles at most, so that a million of them never
/// make one enormous commit: everybody else's commits go between theirs, and take as long as they are big. While a million
/// jobs expired, 1 000 jobs a second of another queue took up to 0.2 s with slices of 1 024, and take 10 ms with these.
pub(crate) const SLICE_JOBS_MAX: usize = 256;

/// One endpoint's queue.
#[derive(Debug)]
pub struct Queue {
    pub(crate) endpoint: EndpointNo,
    pub(crate) settings: QueueSettings,

    // Durable: exactly the rows that the store holds.
    pub(crate) jobs: Jobs,
    pub(crate) counters: Counters,

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
}

impl Queue {
    /// An empty queue.
    pub fn new(endpoint: EndpointNo, settings: QueueSettings, counters: Counters) -> Self {
        Self {
            endpoint,
            settings,
            last_seq: counters.reserved_seq,
            counters,
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
        }
    }

    /// Carries out one command; the answer is held until the commit that covers it. What the command causes is added to
    /// `out`, which the caller empties, and keeps for its room: every job comes this way three times. `now` never goes
    /// back between calls.
    pub fn apply(&mut self, now: Millis, command: Command, out: &mut Effects) -> Reply {
        let counters = self.counters;
        let reply = match command {
            Command::Submit(submit) => self.submit(now, submit, out),
            Command::Take(take) => self.take(now, &take, out),
            Command::Report { worker, job, report } => self.report(now, &worker, job, report, out),
            Command::Progress { worker, job } => self.progress(now, &worker, job, out),
            Command::Append { worker, job } => self.append(now, &worker, job),
            Command::Undelivered { job, attempt, damage } => self.undelivered(now, job, attempt, damage, out),
            Command::Ping { worker, holds } => self.ping(now, &worker, holds.as_deref(), out),
            Command::TouchWorker(worker) => self.touch_worker(now, &worker),
            Command::Cancel(job) => self.cancel(now, job, out),
            Command::Retry(job) => self.retry(now, job, out),
            Command::Purge => self.purge(now, out),
            Command::SetTtl { job, ttl_ms } => self.set_ttl(now, job, ttl_ms, out),
            Command::RegisterWorker(worker) => self.register_worker(now, &worker, out),
            Command::DrainWorker(worker) => self.drain_worker(&worker, out),
            Command::LoseWorker { worker, counts_retry, reason } => {
                self.lose_worker(now, &worker, counts_retry, &reason, out)
            }
            Command::RenewLeases => self.renew_leases(now),
            Command::SettleWebhook { job, end } => self.settle_webhook(job, end, out),
            Command::RedeliverWebhook { job, end } => self.redeliver_webhook(now, job, end, out),
            Command::Tick => self.tick(now, out),
            Command::Configure(settings) => self.configure(settings, out),
            Command::DeleteSlice => self.delete_slice(now, out),
        };
        let reserved = self.counters.reserved_seq != counters.reserved_seq;
        if self.counters != counters && (reserved || !planted(Bug::CountersNotKept)) {
            out.changes.push(Change::PutCounters(self.endpoint, self.counters));
        }
        reply
    }

    /// When [`Command::Tick`] has something to do next; none means never, a time in the past means at once.
    pub fn next_deadline(&self) -> Option<Millis> {
        if !self.purging.is_empty() {
            return Some(Millis(0));
        }
        let job = self.deadlines.first().map(|(at, _)| at);
        job.into_iter().chain(self.workers.next_check()).chain(self.aside.next_return()).min()
    }

    fn configure(&mut self, settings: QueueSettings, out: &mut Effects) -> Reply {
        self.settings = settings;
        self.workers.schedule_all(settings.lease_ms);
        if !self.ready.is_empty() && !settings.paused {
            out.signals.push(Signal::JobReady);
        }
        out.signals.push(Signal::LoadChanged);
        Reply::Done
    }
}
