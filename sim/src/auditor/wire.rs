//! Bodies of requests and responses. Values that the auditor need not parse stay text.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::workers::UNREADABLE;

/// The state of a job in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShownState {
    InQueue,
    InProgress,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl PostContent {
    /// A short text for messages.
    pub fn brief(&self) -> String {
        match self {
            Self::Completed(output) => {
                format!("result {}", output.as_ref().map_or("-".to_owned(), |output| brief(output)))
            }
            Self::Failed(error, _) => format!("error {}", brief(error.as_bytes())),
            Self::Progress(value) => format!("progress {}", brief(value)),
            Self::Unreadable => "nothing readable".to_owned(),
        }
    }
}

impl ShownState {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "IN_QUEUE" => Self::InQueue,
            "IN_PROGRESS" => Self::InProgress,
            "COMPLETED" => Self::Completed,
            "FAILED" => Self::Failed,
            "CANCELLED" => Self::Cancelled,
            "TIMED_OUT" => Self::TimedOut,
            _ => return None,
        })
    }

    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::InQueue | Self::InProgress)
    }
}

/// A job's record, or its beginning.
#[derive(Deserialize)]
pub(super) struct JobRecord<'a> {
    pub id: &'a str,
    pub status: &'a str,
    #[serde(default, borrow, deserialize_with = "present")]
    pub output: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub error: Option<&'a RawValue>,
    #[serde(default, borrow, rename = "workerId")]
    pub worker: Option<&'a str>,
    #[serde(default)]
    pub retries: Option<u64>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub input: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    pub webhook: Option<&'a RawValue>,
    #[serde(default, rename = "outputOmitted")]
    pub output_omitted: bool,
    #[serde(default, rename = "outputBytes")]
    pub output_bytes: Option<usize>,
    #[serde(default, borrow, rename = "statusUrl")]
    pub status_url: Option<&'a str>,
    #[serde(default, rename = "inputOmitted")]
    pub input_omitted: bool,
}

/// The id in a record.
#[derive(Deserialize)]
struct Named<'a> {
    id: &'a str,
}

/// The job ids in a response.
pub(super) fn ids(body: &[u8]) -> Vec<&str> {
    if let Ok(one) = serde_json::from_slice::<Named<'_>>(body) {
        return vec![one.id];
    }
    if let Ok(page) = serde_json::from_slice::<Page<'_>>(body) {
        return page.requests.iter().map(|record| record.id).collect();
    }
    let many = serde_json::from_slice::<Vec<Named<'_>>>(body).unwrap_or_default();
    many.iter().map(|one| one.id).collect()
}

/// A page of `/requests`.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(borrow)]
    pub requests: Vec<JobRecord<'a>>,
    #[serde(borrow)]
    pub cursor: Option<Cow<'a, str>>,
}

/// The body of a submit.
#[derive(Deserialize)]
pub(super) struct Submitted<'a> {
    #[serde(borrow)]
    pub input: &'a RawValue,
    #[serde(default, borrow)]
    pub webhook: Option<Cow<'a, str>>,
    #[serde(default)]
    pub policy: Option<Policy>,
}

#[derive(Deserialize)]
pub(super) struct Policy {
    #[serde(default, rename = "executionTimeout")]
    pub execution_timeout_ms: Option<u64>,
    #[serde(default)]
    pub ttl: Option<u64>,
    #[serde(default, rename = "lowPriority")]
    pub low_priority: bool,
}

/// A job in a take response.
#[derive(Deserialize)]
pub(super) struct TakenJob<'a> {
    pub id: &'a str,
    #[serde(borrow)]
    pub input: &'a RawValue,
}

impl TakenJob<'_> {
    /// Whether the job makes the whole take response unreadable.
    pub fn is_unreadable(&self) -> bool {
        self.input.get().contains(UNREADABLE)
    }
}

/// A post of a worker.
#[derive(Deserialize)]
struct Report<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    output: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    status: Option<&'a RawValue>,
}

/// One chunk in a response of `/stream`.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub output: &'a RawValue,
}

/// The response of `/stream` on the path for client libraries.
#[derive(Deserialize)]
pub(super) struct Streamed<'a> {
    pub status: &'a str,
    #[serde(borrow)]
    pub stream: Vec<Chunk<'a>>,
}

/// The response of `/purge-queue`.
#[derive(Deserialize)]
pub(super) struct PurgeResult<'a> {
    pub removed: u64,
    pub status: &'a str,
}

/// The response of `/health`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Health {
    pub jobs: JobNumbers,
    pub workers: WorkerNumbers,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobNumbers {
    pub completed: u64,
    pub failed: u64,
    pub in_progress: u64,
    pub in_queue: u64,
    pub retried: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct WorkerNumbers {
    pub idle: u64,
    pub ready: u64,
    pub running: u64,
}

/// Parses a value that is present, also if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Returns a part of a body without copying.
pub(super) fn part(body: &Bytes, raw: &RawValue) -> Bytes {
    body.slice_ref(raw.get().as_bytes())
}

/// What a worker's post reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PostContent {
    Completed(Option<Bytes>),
    Failed(String, Option<Bytes>),
    Progress(Bytes),
    /// The post cannot be parsed.
    Unreadable,
}

/// Parses a post to `job-done`.
pub(super) fn read_result(body: &Bytes) -> PostContent {
    let body = &without_foreign_numbers(body);
    let Ok(report) = serde_json::from_slice::<Report<'_>>(body) else { return PostContent::Unreadable };
    let output = report.output.map(|raw| part(body, raw));
    match report.error.and_then(truthy_text) {
        Some(error) => PostContent::Failed(error, output),
        None if report.status.is_some_and(|status| status.get() == r#""IN_PROGRESS""#) => {
            PostContent::Progress(output.unwrap_or(Bytes::from_static(b"null")))
        }
        None => PostContent::Completed(output),
    }
}

/// Parses a post to `job-stream`: a chunk, or an end of the job.
pub(super) fn read_chunk(body: &Bytes) -> PostContent {
    let body = &without_foreign_numbers(body);
    let Ok(report) = serde_json::from_slice::<Report<'_>>(body) else { return PostContent::Unreadable };
    match (report.error.and_then(truthy_text), report.output) {
        (Some(error), _) => PostContent::Failed(error, None),
        (None, Some(output)) => PostContent::Progress(part(body, output)),
        (None, None) => PostContent::Unreadable,
    }
}

/// The start of a text, for messages.
pub(super) fn brief(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&text[..text.len().min(120)]).into_owned();
    if text.len() > 120 { shown + "…" } else { shown }
}

/// The content of a string, or the JSON text of another value.
pub(super) fn plain(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// The text of an error; `None` for values that are false in Python.
fn truthy_text(raw: &RawValue) -> Option<String> {
    let is_nothing = match raw.get() {
        "null" | "false" | "\"\"" => true,
        text if text.starts_with(['[', '{']) => text[1..text.len() - 1].trim().is_empty(),
        text => text.parse::<f64>().is_ok_and(|number| number == 0.0),
    };
    (!is_nothing).then(|| plain(raw))
}

/// Replaces numbers that Python writes but JSON lacks with `null`.
fn without_foreign_numbers(body: &Bytes) -> Bytes {
    const FOREIGN: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    let Ok(text) = std::str::from_utf8(body) else { return body.clone() };
    if !FOREIGN.iter().any(|word| text.contains(word)) {
        return body.clone();
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    let mut quoted = false;
    while let Some(first) = rest.chars().next() {
        let foreign = FOREIGN.iter().find(|word| !quoted && rest.starts_with(**word));
        let taken = match (foreign, first) {
            (Some(word), _) => {
                cleaned.push_str("null");
                rest = &rest[word.len()..];
                continue;
            }
            (None, '\\') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, first) => {
                quoted ^= first == '"';
                first.len_utf8()
            }
        };
        cleaned.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Bytes::from(cleaned)
}
