//! Counters of what happened to an endpoint's submits, workers and webhook calls.

use std::sync::atomic::{AtomicU64, Ordering};

use longshore_model::{AttemptEnd, StartCause};

use super::Histogram;

/// Bounds of the starts of workers, in ms: 100 ms to 30 min.
const START_MS_BOUNDS: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000,
];

/// How a worker, or its start, came to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// The server stopped it.
    Stopped,
    /// It exited by itself, with code 0 after it had been ready.
    Finished,
    /// It exited in any other way.
    Crashed,
    /// The launcher could not start it.
    NotStarted,
}

impl ExitKind {
    /// Every kind, in the order of the variants.
    pub const ALL: [Self; 4] = [Self::Stopped, Self::Finished, Self::Crashed, Self::NotStarted];

    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Finished => "finished",
            Self::Crashed => "crashed",
            Self::NotStarted => "not_started",
        }
    }
}

/// Why a submit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmitRefusal {
    /// The queue has as many jobs as it may have.
    QueueFull,
    /// Another body was submitted with the same `Idempotency-Key`.
    KeyReused,
    /// The rate or the concurrent requests of the endpoint or the key were used up.
    RateLimit,
}

impl SubmitRefusal {
    /// Every reason, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::QueueFull, Self::KeyReused, Self::RateLimit];

    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::KeyReused => "key_reused",
            Self::RateLimit => "rate_limit",
        }
    }
}

/// The result of one attempt to call a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// The receiver accepted the call.
    Delivered,
    /// The call failed and is repeated later.
    Retried,
    /// The call failed and is given up.
    Failed,
}

impl WebhookOutcome {
    /// Every outcome, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Retried, Self::Failed];

    /// The value of the label `outcome`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Failed => "failed",
        }
    }
}

/// Why an attempt of a job is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryReason {
    /// The handler reported an error, and the endpoint retries those.
    Failed,
    /// The worker exited, was not heard of for too long, or dropped the job.
    WorkerLost,
    /// The worker did not confirm the delivery, more often than that is tolerated.
    Undelivered,
    /// A client asked for it.
    Client,
}

impl RetryReason {
    /// Every reason, in the order of the variants.
    pub const ALL: [Self; 4] = [Self::Failed, Self::WorkerLost, Self::Undelivered, Self::Client];

    /// The reason of an automatic retry after an attempt that ended this way.
    pub(crate) fn after(end: AttemptEnd) -> Self {
        match end {
            AttemptEnd::Completed | AttemptEnd::Failed | AttemptEnd::TimedOut => Self::Failed,
            AttemptEnd::Undelivered => Self::Undelivered,
            AttemptEnd::WorkerLost | AttemptEnd::Drained | AttemptEnd::Cancelled => Self::WorkerLost,
        }
    }

    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::WorkerLost => "worker_lost",
            Self::Undelivered => "undelivered",
            Self::Client => "client",
        }
    }
}

/// The counters of one endpoint's submits, retries, managed workers and webhook calls. Volatile: empty when the server starts.
#[derive(Debug)]
pub struct EventCounts {
    /// The time from the launch of a worker to its first take, in ms.
    pub start_ms: Histogram,
    starts: [AtomicU64; StartCause::ALL.len()],
    exits: [AtomicU64; ExitKind::ALL.len()],
    webhooks: [AtomicU64; WebhookOutcome::ALL.len()],
    refusals: [AtomicU64; SubmitRefusal::ALL.len()],
    retries: [AtomicU64; RetryReason::ALL.len()],
    sync_submits: AtomicU64,
    async_submits: AtomicU64,
}

impl Default for EventCounts {
    fn default() -> Self {
        Self {
            start_ms: Histogram::new(&START_MS_BOUNDS),
            starts: [const { AtomicU64::new(0) }; StartCause::ALL.len()],
            exits: [const { AtomicU64::new(0) }; ExitKind::ALL.len()],
            webhooks: [const { AtomicU64::new(0) }; WebhookOutcome::ALL.len()],
            refusals: [const { AtomicU64::new(0) }; SubmitRefusal::ALL.len()],
            retries: [const { AtomicU64::new(0) }; RetryReason::ALL.len()],
            sync_submits: AtomicU64::new(0),
            async_submits: AtomicU64::new(0),
        }
    }
}

impl EventCounts {
    /// Counts a start of a worker that has begun.
    pub fn starting(&self, cause: StartCause) {
        self.starts[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a worker, or of its start.
    pub fn ended(&self, kind: ExitKind) {
        self.exits[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an attempt to call a webhook.
    pub fn called(&self, outcome: WebhookOutcome) {
        self.webhooks[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a submit that was refused.
    pub fn refused(&self, reason: SubmitRefusal) {
        self.refusals[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a repeated attempt.
    pub(crate) fn retried(&self, reason: RetryReason) {
        self.retries[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an accepted submit; `waits`: its client waits for the result.
    pub fn submitted(&self, waits: bool) {
        let submits = if waits { &self.sync_submits } else { &self.async_submits };
        submits.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of accepted submits whose clients waited for the results.
    pub fn sync_submits(&self) -> u64 {
        self.sync_submits.load(Ordering::Relaxed)
    }

    /// The number of accepted submits whose clients did not wait for the results.
    pub fn async_submits(&self) -> u64 {
        self.async_submits.load(Ordering::Relaxed)
    }

    /// The number of attempts that were repeated for this reason.
    pub fn retries(&self, reason: RetryReason) -> u64 {
        self.retries[reason as usize].load(Ordering::Relaxed)
    }

    /// The number of submits that were refused for this reason.
    pub fn refusals(&self, reason: SubmitRefusal) -> u64 {
        self.refusals[reason as usize].load(Ordering::Relaxed)
    }

    /// The number of starts for this cause.
    pub fn starts(&self, cause: StartCause) -> u64 {
        self.starts[cause as usize].load(Ordering::Relaxed)
    }

    /// The number of ends of this kind.
    pub fn ends(&self, kind: ExitKind) -> u64 {
        self.exits[kind as usize].load(Ordering::Relaxed)
    }

    /// The number of attempts with this outcome.
    pub fn calls(&self, outcome: WebhookOutcome) -> u64 {
        self.webhooks[outcome as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_counted_under_its_own_label() {
        let counts = EventCounts::default();
        counts.starting(StartCause::QueuedJobs);
        counts.ended(ExitKind::NotStarted);
        counts.ended(ExitKind::NotStarted);
        counts.called(WebhookOutcome::Retried);
        counts.refused(SubmitRefusal::RateLimit);
        for waits in [true, false, false] {
            counts.submitted(waits);
        }
        counts.retried(RetryReason::Client);
        assert_eq!(StartCause::ALL.map(|cause| counts.starts(cause)), [0, 1, 0]);
        assert_eq!(ExitKind::ALL.map(|kind| counts.ends(kind)), [0, 0, 0, 2]);
        assert_eq!(WebhookOutcome::ALL.map(|outcome| counts.calls(outcome)), [0, 1, 0]);
        assert_eq!(SubmitRefusal::ALL.map(|reason| counts.refusals(reason)), [0, 0, 1]);
        assert_eq!(RetryReason::ALL.map(|reason| counts.retries(reason)), [0, 0, 0, 1]);
        assert_eq!((counts.sync_submits(), counts.async_submits()), (1, 2));
    }
}
