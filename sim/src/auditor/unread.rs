//! Jobs whose input was unreadable or damaged. The facts come from the simulated disk, not from the server.
//!
//! A job whose input cannot be read returns to its position in the queue and is deferred for a limited time. Other
//! jobs are delivered before it. A job with a damaged input fails, and nothing else may fail with that error.

use super::Auditor;
use super::job::JobNo;
use super::job_view::{JobView, history};
use super::model::Map;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::wire::ShownState;

/// Time for which a job is deferred after the first read error, in ms. Doubles each time.
const PAUSE_MS_MIN: u64 = 1_000;
/// The longest such time, in ms.
const PAUSE_MS_MAX: u64 = 30_000;
/// Text in the error of a job with a damaged input.
const DAMAGED: &[u8] = b"damaged on the server's disk";

/// What the disk did to inputs, by job id. This may happen before any party knows the job.
#[derive(Debug, Default)]
pub(super) struct Unread {
    failures: Map<Box<str>, Vec<Failure>>,
    damaged: Map<Box<str>, EventTime>,
}

/// A read error of an input.
#[derive(Clone, Copy, Debug)]
struct Failure {
    /// Earliest event of the assignment for which the input was read.
    taken: EventTime,
    at: EventTime,
}

impl Unread {
    /// Since when the job's input is damaged.
    pub(super) fn damaged(&self, job: &str) -> Option<EventTime> {
        self.damaged.get(job).copied()
    }
}

impl Auditor {
    /// The disk failed to read a job's input.
    pub(super) fn input_unread(&mut self, id: &str) {
        let at = self.ledger.now;
        let job = self.model.find_job(id).and_then(|no| self.model.get(no));
        let open = job.map(|job| &self.model.endpoints[job.endpoint.0].takes_open);
        let arrivals = open.into_iter().flatten().map(|(_, arrived, _)| *arrived);
        let taken = arrivals.min_by_key(|arrived| arrived.seq).unwrap_or(at);
        self.unread.failures.entry(id.into()).or_default().push(Failure { taken, at });
    }

    /// The disk damaged or lost a job's input.
    pub(super) fn input_damaged(&mut self, id: &str) {
        let at = self.ledger.now;
        self.unread.damaged.entry(id.into()).or_insert(at);
    }

    /// Whether a job may have been assigned for a read, or deferred after it, between the two events.
    pub(super) fn may_be_deferred(&self, no: JobNo, asked: EventTime, got: EventTime) -> bool {
        let failures = self.model.get(no).and_then(|job| self.unread.failures.get(&job.id));
        let mut failures = failures.into_iter().flatten().enumerate();
        failures.any(|(nth, failure)| {
            let pause_ms = PAUSE_MS_MIN.saturating_mul(1 << nth.min(5)).min(PAUSE_MS_MAX);
            failure.taken.seq < got.seq && asked.ms <= failure.at.ms + pause_ms + SLACK_MS
        })
    }

    /// Whether a job may have been assigned and requeued between the two events because its input was unreadable.
    pub(super) fn was_assigned_unread(&self, no: JobNo, from: EventTime, until: EventTime) -> bool {
        let is_damaged = self.model.get(no).is_some_and(|job| self.unread.damaged(&job.id).is_some());
        is_damaged || self.may_be_deferred(no, from, until)
    }

    /// A job was shown as failed. Returns whether the error names a damaged input.
    pub(super) fn check_damage(&mut self, view: &JobView) -> bool {
        let error = view.shown.as_ref().and_then(|shown| shown.error.as_ref());
        let says_so = view.state == ShownState::Failed
            && error.is_some_and(|error| error.windows(DAMAGED.len()).any(|part| part == DAMAGED));
        let Some(job) = self.model.get(view.job).filter(|_| says_so) else { return false };
        let is_damaged = self.unread.damaged(&job.id).is_some();
        let text = || format!("{} failed for a damaged input, which is intact; {}", job.id, history(job));
        self.ledger.check(Promise::DamageTrue, is_damaged, text);
        true
    }
}
