//! What became of calls: one line for each attempt, in a log per endpoint that keeps the latest of them.
//!
//! Lines of JSON in files and not rows in the store: nothing is decided by them, so they need no commit of their own,
//! and no memory. The file has them when the process dies; a power cut can take the last ones.

mod dir;
mod memory;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;

use longshore_model::{EndpointId, JobEnd, JobId, JobState, Millis};
use serde::{Deserialize, Serialize};

pub use dir::DirWebhookLog;
pub use memory::MemoryWebhookLog;

/// What [`WebhookLog::read`] returns.
pub type LogFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send + 'a>>;

/// Keeps lines about endpoints' webhooks: as many of the latest as there is room for.
pub trait WebhookLog: Send + Sync + 'static {
    /// Appends a line, without its newline, sooner or later. Returns at once.
    fn append(&self, endpoint: EndpointId, line: Vec<u8>);
    /// All lines about the endpoint, those that were appended before among them, oldest first.
    fn read(&self, endpoint: EndpointId) -> LogFuture<'_>;
    /// Removes everything about the endpoint.
    fn forget(&self, endpoint: EndpointId);
}

/// How a webhook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryState {
    /// The receiver accepted it.
    Delivered,
    /// It is tried again.
    Pending,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Delivered, Self::Pending, Self::Failed];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "DELIVERED",
            Self::Pending => "PENDING",
            Self::Failed => "FAILED",
        }
    }
}

/// One line: an attempt, or that there is no further one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogLine {
    pub id: String,
    pub receiver: String,
    pub state: DeliveryState,
    #[serde(flatten)]
    pub attempt: DeliveryAttempt,
}

/// One attempt to deliver a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryAttempt {
    /// Its number, from 1 on; from 1 again when the webhook is delivered again.
    pub attempt: u32,
    /// When it began.
    pub at: Millis,
    /// How long it took.
    pub latency_ms: u64,
    /// What the receiver answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The beginning of what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A webhook, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The `webhook-id` of its calls.
    pub id: String,
    /// The job.
    pub job: JobId,
    /// The end that it reports.
    pub end: JobEnd,
    /// Scheme, host and port that were called.
    pub receiver: String,
    /// How it stands.
    pub state: DeliveryState,
    /// The attempts that the log still has, oldest first.
    pub attempts: Vec<DeliveryAttempt>,
}

impl Delivery {
    /// When the latest attempt began.
    pub fn at(&self) -> Millis {
        self.attempts.last().map_or(Millis(0), |attempt| attempt.at)
    }
}

/// The `webhook-id` of the calls that report this end.
pub fn webhook_id(job: JobId, end: JobEnd) -> String {
    format!("{job}-{}-{}", end.attempt.0, end.state.as_str().to_ascii_lowercase())
}

/// The end that a `webhook-id` names.
pub fn parse_webhook_id(id: &str) -> Option<(JobId, JobEnd)> {
    let (rest, state) = id.rsplit_once('-')?;
    let (job, attempt) = rest.rsplit_once('-')?;
    let state = JobState::parse(&state.to_ascii_uppercase()).filter(|state| state.is_terminal())?;
    let end = JobEnd { state, attempt: longshore_model::Attempt(attempt.parse().ok()?) };
    Some((job.parse().ok()?, end))
}

/// The deliveries of a log, the one with the latest attempt first. Lines that make no sense are left out: a file can
/// be cut off anywhere.
pub(crate) fn deliveries(log: &[u8]) -> Vec<Delivery> {
    let mut found: Vec<Delivery> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for line in log.split(|byte| *byte == b'\n') {
        let Ok(LogLine { id, receiver, state, attempt }) = serde_json::from_slice(line) else { continue };
        let Some((job, end)) = parse_webhook_id(&id) else { continue };
        let place = *places.entry(id.clone()).or_insert(found.len());
        if place == found.len() {
            let attempts = Vec::new();
            found.push(Delivery { id, job, end, receiver: receiver.clone(), state, attempts });
        }
        let delivery = &mut found[place];
        (delivery.receiver, delivery.state) = (receiver, state);
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
        let line = LogLine { id: id.to_owned(), receiver: "http://h:1".to_owned(), state, attempt };
        serde_json::to_vec(&line).unwrap()
    }

    #[test]
    fn ids_lead_back_to_the_end() {
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
    fn attempts_are_put_together_and_what_is_no_line_is_left_out() {
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
        assert_eq!(found[0].at(), Millis(30));
        assert_eq!(found[0].attempts[1].answer.as_deref(), Some("no\n"));
    }
}
