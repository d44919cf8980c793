//! The log of deliveries: one line of JSON per attempt, in a log per endpoint that keeps the latest lines.
//!
//! Lines in files and not rows in the store: no decision depends on a line, so it needs no commit and no memory.
//! Written lines survive the process; a power cut can lose the last ones.

mod dir;
mod memory;
mod queued;
pub(crate) mod watched;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;

use longshore_model::{EndpointId, JobEnd, JobId, JobState, Millis};
use serde::{Deserialize, Serialize};

pub use dir::open_webhook_log;
pub use memory::MemoryWebhookLog;
pub use queued::{QueuedWebhookLog, WebhookLogRequest};

/// The future of [`WebhookLog::read`]: the lines of one endpoint's log, separated by newlines.
pub type LogFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send + 'a>>;

/// Stores the lines of the logs of deliveries. An implementation may limit the size of a log and drop its oldest lines.
pub trait WebhookLog: Send + Sync + 'static {
    /// Appends a line, given without its newline, in the background. Never waits; a line can be lost.
    fn append(&self, endpoint: EndpointId, line: Vec<u8>);
    /// Returns the lines of the endpoint, oldest first, with every line that was appended before this call. Empty lines
    /// and a line that was cut off may be between them.
    ///
    /// # Errors
    ///
    /// An I/O error if the log cannot be read.
    fn read(&self, endpoint: EndpointId) -> LogFuture<'_>;
    /// Removes all lines of the endpoint, in the background. Never waits.
    fn forget(&self, endpoint: EndpointId);
}

/// The state of a delivery after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryState {
    /// The receiver accepted the call.
    Delivered,
    /// The call has another attempt.
    Pending,
    /// The call was given up.
    Failed,
}

impl DeliveryState {
    /// Every state, in the order of the declaration.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Pending, Self::Failed];

    /// Returns the name of the state in the log and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "DELIVERED",
            Self::Pending => "PENDING",
            Self::Failed => "FAILED",
        }
    }
}

/// A line of the log: an attempt, or the reason why a call was given up without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogLine {
    /// The `webhook-id` of the call.
    pub id: String,
    /// Scheme, host and port of the receiver; host and port if its breaker was open too long; empty without a valid
    /// URL.
    pub receiver: String,
    /// The state of the delivery after the attempt.
    pub state: DeliveryState,
    /// When the next attempt is due; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Millis>,
    /// The attempt; its members stand beside the others in the JSON object.
    #[serde(flatten)]
    pub attempt: DeliveryAttempt,
}

/// One attempt of a delivery. If the call was given up without an attempt, the number of the attempt that was not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryAttempt {
    /// The number of the attempt, from 1; a redelivery starts at 1 again.
    pub attempt: u32,
    /// When the attempt began.
    pub at: Millis,
    /// Time from the request to the response or failure, in ms.
    pub latency_ms: u64,
    /// The HTTP status of the response; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The first KiB of the response's body, invalid UTF-8 replaced; `None` without a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why there is no response; `None` with a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The delivery of one end of a job, as its log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The `webhook-id` header of the delivery's calls.
    pub id: String,
    /// The public id of the job that ended.
    pub job: JobId,
    /// The end that the calls report.
    pub end: JobEnd,
    /// The receiver of the latest attempt: scheme, host and port.
    pub receiver: String,
    /// The state after the latest attempt.
    pub state: DeliveryState,
    /// When the next attempt is due; `None` if there is none, and if an earlier version of the server made the latest one.
    pub next_at: Option<Millis>,
    /// The attempts that the log still has, oldest first.
    pub attempts: Vec<DeliveryAttempt>,
}

impl Delivery {
    /// Returns when the latest attempt began; 0 without one.
    pub fn at(&self) -> Millis {
        self.attempts.last().map_or(Millis(0), |attempt| attempt.at)
    }
}

/// Returns the `webhook-id` of the calls that report this end: `JOB-ATTEMPT-STATE`.
pub fn webhook_id(job: JobId, end: JobEnd) -> String {
    format!("{job}-{}-{}", end.attempt.0, end.state.as_str().to_ascii_lowercase())
}

/// Parses a `webhook-id`; `None` if the text is none.
pub fn parse_webhook_id(id: &str) -> Option<(JobId, JobEnd)> {
    let (rest, state) = id.rsplit_once('-')?;
    let (job, attempt) = rest.rsplit_once('-')?;
    let state = JobState::parse(&state.to_ascii_uppercase()).filter(|state| state.is_terminal())?;
    let end = JobEnd { state, attempt: longshore_model::Attempt(attempt.parse().ok()?) };
    Some((job.parse().ok()?, end))
}

/// Returns the deliveries of a log, the one with the latest attempt first. Invalid lines are skipped: a file can be cut
/// off anywhere.
pub(crate) fn deliveries(log: &[u8]) -> Vec<Delivery> {
    let mut found: Vec<Delivery> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for line in log.split(|byte| *byte == b'\n') {
        let Ok(LogLine { id, receiver, state, next_at, attempt }) = serde_json::from_slice(line) else {
            continue;
        };
        let Some((job, end)) = parse_webhook_id(&id) else { continue };
        let at = *index.entry(id.clone()).or_insert(found.len());
        if at == found.len() {
            let attempts = Vec::new();
            found.push(Delivery { id, job, end, receiver: receiver.clone(), state, next_at, attempts });
        }
        let delivery = &mut found[at];
        (delivery.receiver, delivery.state, delivery.next_at) = (receiver, state, next_at);
        delivery.attempts.push(attempt);
    }
    found.sort_by(|one, other| (other.at(), &other.id).cmp(&(one.at(), &one.id)));
    found
}

#[cfg(test)]
mod tests {
    use longshore_model::Attempt;

    use super::*;

    fn line(id: &str, state: DeliveryState, number: u32, at: u64) -> Vec<u8> {
        let attempt = DeliveryAttempt {
            attempt: number,
            at: Millis(at),
            latency_ms: 5,
            status: Some(500),
            answer: Some("no\n".to_owned()),
            error: None,
        };
        let next_at = (state == DeliveryState::Pending).then_some(Millis(at + 10));
        let line = LogLine { id: id.to_owned(), receiver: "http://h:1".to_owned(), state, next_at, attempt };
        serde_json::to_vec(&line).unwrap()
    }

    #[test]
    fn a_webhook_id_parses_to_its_job_and_end() {
        for sync in [false, true] {
            for state in [JobState::Completed, JobState::TimedOut] {
                let (job, end) = (JobId::mint(Millis(7), 9, sync), JobEnd { state, attempt: Attempt(3) });
                assert_eq!(parse_webhook_id(&webhook_id(job, end)), Some((job, end)));
            }
        }
        for text in ["", "-", "a-1-completed", "0190163d-8694-739b-aea5-966c26f8ad90-1-in_queue"] {
            assert_eq!(parse_webhook_id(text), None, "{text}");
        }
    }

    #[test]
    fn attempts_are_grouped_by_delivery_and_invalid_lines_are_skipped() {
        let end = JobEnd { state: JobState::Failed, attempt: Attempt(1) };
        let ids = [1, 2].map(|number| webhook_id(JobId::mint(Millis(1), number, false), end));
        let lines = [
            line(&ids[0], DeliveryState::Pending, 1, 10),
            b"{\"id\":\"cut of".to_vec(),
            line(&ids[1], DeliveryState::Delivered, 1, 20),
            b"\xff".to_vec(),
            line(&ids[0], DeliveryState::Failed, 2, 30),
            line("nonsense", DeliveryState::Failed, 2, 30),
        ];
        let found = deliveries(&lines.join(&b'\n'));
        let seen: Vec<_> = found.iter().map(|found| (&found.id, found.state, found.attempts.len())).collect();
        assert_eq!(seen, [(&ids[0], DeliveryState::Failed, 2), (&ids[1], DeliveryState::Delivered, 1)]);
        assert_eq!((found[0].at(), found[0].next_at), (Millis(30), None));
        assert_eq!(deliveries(&lines[0])[0].next_at, Some(Millis(20)));
        assert_eq!(found[0].attempts[1].answer.as_deref(), Some("no\n"));
    }
}
