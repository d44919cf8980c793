//! Outputs and chunks that are damaged on the disk. The facts come from the simulated disk, not from the server.
//!
//! Damaged data is reported as damaged permanently, by every route. Intact data is never reported as damaged.
//! Nothing else about the job changes.

use serde::Deserialize;

use super::Auditor;
use super::exchange::Exchange;
use super::job::{Job, JobNo};
use super::job_view::{JobView, LIST, history};
use super::model::Map;
use super::operation::Operation;
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::wire::{JobRecord, ShownState, brief};
use crate::observation::HttpResponse;

/// Name of a webhook's record in messages.
const WEBHOOK: &str = "a webhook";

/// Damaged data that the disk returned, by job id.
#[derive(Debug, Default)]
pub(super) struct Damage {
    outputs: Map<Box<str>, Vec<EventTime>>,
    /// Damaged chunks with their offsets.
    chunks: Map<Box<str>, Vec<(u64, EventTime)>>,
    last: Option<EventTime>,
}

/// The part of an error that names its kind.
#[derive(Deserialize)]
struct Coded<'a> {
    code: &'a str,
}

/// Whether an error reports damage.
pub(super) fn says_damaged(body: &[u8]) -> bool {
    serde_json::from_slice::<Coded<'_>>(body).is_ok_and(|failure| failure.code == "damaged")
}

/// Whether a response reports damage.
pub(super) fn is_damaged(answer: &HttpResponse) -> bool {
    answer.status == 500 && says_damaged(&answer.body)
}

impl Auditor {
    /// The disk returned a damaged output.
    pub(super) fn output_damaged(&mut self, id: &str) {
        let at = self.touched_by_damage(id);
        self.damage.outputs.entry(id.into()).or_default().push(at);
    }

    /// The disk damaged a chunk, or returned a damaged one.
    pub(super) fn chunk_damaged(&mut self, id: &str, offset: u64) {
        let at = self.touched_by_damage(id);
        self.damage.chunks.entry(id.into()).or_default().push((offset, at));
    }

    fn touched_by_damage(&mut self, id: &str) -> EventTime {
        let at = self.ledger.now;
        self.damage.last = Some(at);
        if let Some(job) = self.model.find_job(id).and_then(|no| self.model.get_mut(no)) {
            job.touched = at;
        }
        at
    }

    /// Whether the disk has returned damaged data of this job since then.
    pub(super) fn was_damage_read(&self, job: &Job, since: EventTime) -> bool {
        let mut chunks = self.damage.chunks.get(&job.id).into_iter().flatten();
        self.was_output_damaged(job, since) || chunks.any(|(_, at)| at.seq > since.seq)
    }

    fn was_output_damaged(&self, job: &Job, since: EventTime) -> bool {
        self.damage.outputs.get(&job.id).into_iter().flatten().any(|at| at.seq > since.seq)
    }

    /// Whether the job's present output was damaged before that time.
    pub(super) fn has_damaged_output(&self, job: &Job, before: EventTime) -> bool {
        let mut reads = self.damage.outputs.get(&job.id).into_iter().flatten();
        is_certain(job) && reads.any(|at| job.cycle.began.1.seq < at.seq && at.seq < before.seq)
    }

    /// Whether any output of the job was ever damaged.
    pub(super) fn may_have_damaged_output(&self, job: &Job) -> bool {
        self.damage.outputs.contains_key(&job.id)
    }

    /// The first offset at which chunks may be damaged.
    pub(super) fn first_damaged_chunk(&self, job: &Job) -> Option<u64> {
        self.damage.chunks.get(&job.id)?.iter().map(|(offset, _)| *offset).min()
    }

    /// A response reported damage.
    pub(super) fn damage_reported(&mut self, exchange: &Exchange, arrived: EventTime) {
        let job = exchange.job.and_then(|no| self.model.get(no));
        let is_true = match (exchange.operation, job) {
            (Operation::RunSync, _) => self.damage.last.is_some_and(|last| last.seq > arrived.seq),
            (Operation::Status { .. } | Operation::StatusSync, Some(job)) => {
                self.was_output_damaged(job, arrived)
            }
            (Operation::Stream { .. } | Operation::Follow, Some(job)) => self.was_damage_read(job, arrived),
            // No client knew the job at the time of the request.
            (operation, None) => is_read(operation),
            _ => false,
        };
        let text = || format!("{}: what was read is intact", exchange.path);
        self.ledger.check(Promise::DamageReported, is_true, text);
        let Some(job) = exchange.job else { return };
        let terminal = self.model.get(job).and_then(|job| job.cycle.terminal.as_ref());
        let state = terminal.map_or(ShownState::Completed, |terminal| terminal.state);
        // A damaged job exists as long as any other.
        self.check_not_gone(&JobView { job, from: arrived, state, shown: None, what: "an answer of damage" });
    }

    /// Checks that a shown record is not one with a damaged output.
    pub(super) fn check_damage_reported(
        &mut self,
        no: JobNo,
        record: &JobRecord<'_>,
        from: EventTime,
        what: &str,
    ) {
        let state = ShownState::parse(record.status);
        let has_outcome =
            matches!(state, Some(ShownState::Completed | ShownState::Failed | ShownState::TimedOut));
        let Some(job) = self.model.get(no).filter(|_| has_outcome) else { return };
        let now = self.ledger.now;
        let is_damaged = if what == WEBHOOK {
            let read = self.damage.outputs.get(&job.id).into_iter().flatten();
            let mut long_ago = read.filter(|at| at.ms + SLACK_MS < now.ms);
            is_certain(job) && long_ago.any(|at| at.seq > job.cycle.began.1.seq)
        } else {
            self.has_damaged_output(job, from)
        };
        // A list shows the damage in the error field.
        if !is_damaged || what == LIST && record.output.is_none() {
            return;
        }
        let output = record.output.map_or("none".to_owned(), |raw| brief(raw.get().as_bytes()));
        let text = || format!("{}: {what} shows output {output}, which is damaged; {}", job.id, history(job));
        self.ledger.fail(Promise::DamageReported, text);
    }

    /// Checks a page of a stream: it ends before the first damaged chunk, and is refused if it would start with
    /// one.
    pub(super) fn check_page_damage(&mut self, no: JobNo, offset: u64, shown: usize, arrived: EventTime) {
        let Some(job) = self.model.get(no).filter(|job| is_certain(job)) else { return };
        let Some((over, _)) = job.cycle.over else { return };
        let chunks = self.damage.chunks.get(&job.id).into_iter().flatten();
        // A terminal job keeps all of its chunks.
        let certain = chunks.filter(|(at, when)| {
            over.seq < when.seq && job.cycle.began.1.seq < when.seq && when.seq < arrived.seq && *at >= offset
        });
        let Some(first) = certain.map(|(at, _)| *at).min() else { return };
        let is_right = shown > 0 && shown as u64 <= first - offset;
        let text = || {
            format!(
                "{}: chunk {first} is damaged, and a stream from {offset} shows {shown} chunks; {}",
                job.id,
                history(job)
            )
        };
        self.ledger.check(Promise::DamageReported, is_right, text);
    }
}

/// Whether the operation reads a job's output or chunks.
fn is_read(operation: Operation) -> bool {
    use Operation::{Follow, Status, StatusSync, Stream};
    matches!(operation, Status { .. } | StatusSync | Stream { .. } | Follow)
}

/// Whether the job certainly has not been retried unnoticed.
fn is_certain(job: &Job) -> bool {
    !job.is_void && job.gone.is_none() && job.retries.is_empty()
}
