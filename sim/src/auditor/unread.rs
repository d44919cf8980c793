//! Jobs whose input could not be read, or was damaged: what the world did to the disk, not what the server says of it.
//!
//! A job whose input cannot be read goes back to its place in the line and is handed out to nobody for a while: others
//! go before it. One whose input is damaged fails, and nothing else may fail a job like that.

use super::Auditor;
use super::job::JobNo;
use super::job_view::{JobView, history};
use super::model::Map;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::wire::ShownState;

/// For how long a job is set aside after its input could not be read for the first time. It doubles each time.
const PAUSE_MS_MIN: u64 = 1_000;
/// The longest.
const PAUSE_MS_MAX: u64 = 30_000;
/// What the error of a job with a damaged input says.
const DAMAGED: &[u8] = b"damaged on the server's disk";

/// What the disk did to the inputs of jobs, by the jobs' ids: it may do so before anybody else knows of them.
#[derive(Debug, Default)]
pub(super) struct Unread {
    failures: Map<Box<str>, Vec<Failure>>,
    damaged: Map<Box<str>, EventTime>,
}

/// An input could not be read.
#[derive(Clone, Copy, Debug)]
struct Failure {
    /// The job cannot have been handed out before this for it to be read.
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
    /// The disk did not let the server read a job's input.
    pub(super) fn input_unread(&mut self, id: &str) {
        let at = self.ledger.now;
        let job = self.notes.find_job(id).and_then(|no| self.notes.get(no));
        let open = job.map(|job| &self.notes.endpoints[job.endpoint.0].takes_open);
        let arrivals = open.into_iter().flatten().map(|(_, arrived, _)| *arrived);
        let taken = arrivals.min_by_key(|arrived| arrived.seq).unwrap_or(at);
        self.unread.failures.entry(id.into()).or_default().push(Failure { taken, at });
    }

    /// The disk changed or lost a job's input.
    pub(super) fn input_damaged(&mut self, id: &str) {
        let at = self.ledger.now;
        self.unread.damaged.entry(id.into()).or_insert(at);
    }

    /// Whether a job may have been taken to be read, or set aside after that, at any time between the two.
    pub(super) fn may_be_aside(&self, no: JobNo, asked: EventTime, got: EventTime) -> bool {
        let failures = self.notes.get(no).and_then(|job| self.unread.failures.get(&job.id));
        let mut failures = failures.into_iter().flatten().enumerate();
        failures.any(|(nth, failure)| {
            let pause_ms = PAUSE_MS_MIN.saturating_mul(1 << nth.min(5)).min(PAUSE_MS_MAX);
            failure.taken.seq < got.seq && asked.ms <= failure.at.ms + pause_ms + SLACK_MS
        })
    }

    /// Whether a job may have been taken between the two by nobody who got it, as its input could not be read.
    pub(super) fn was_taken_in_vain(&self, no: JobNo, from: EventTime, until: EventTime) -> bool {
        let is_damaged = self.notes.get(no).is_some_and(|job| self.unread.damaged(&job.id).is_some());
        is_damaged || self.may_be_aside(no, from, until)
    }

    /// A job was shown as failed. Answers whether that was for a damaged input.
    pub(super) fn check_damage(&mut self, sight: &JobView) -> bool {
        let error = sight.shown.as_ref().and_then(|shown| shown.error.as_ref());
        let says_so = sight.state == ShownState::Failed
            && error.is_some_and(|error| error.windows(DAMAGED.len()).any(|part| part == DAMAGED));
        let Some(job) = self.notes.get(sight.job).filter(|_| says_so) else { return false };
        let is_damaged = self.unread.damaged(&job.id).is_some();
        let text = || format!("{} failed for a damaged input, which is intact; {}", job.id, history(job));
        self.ledger.check(Promise::DamageTrue, is_damaged, text);
        true
    }
}
