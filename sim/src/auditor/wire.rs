//! Bodies as they go over the wire. Values that nobody needs to understand stay text.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::workers::UNREADABLE;

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ShownState {
    InQueue,
    InProgress,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl Word {
    /// In short, for people.
    pub fn brief(&self) -> String {
        match self {
            Self::Completed(output) => {
                format!("result {}", output.as_ref().map_or("-".to_owned(), |output| brief(output)))
            }
            Self::Failed(error, _) => format!("error {}", brief(error.as_bytes())),
            Self::Progress(value) => format!("progress {}", brief(value)),
            Self::Garbled => "nothing readable".to_owned(),
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

/// Only whose it is.
#[derive(Deserialize)]
struct Named<'a> {
    id: &'a str,
}

/// The ids of the jobs that an answer tells of.
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

/// What a client submits.
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

/// A job as a worker gets it.
#[derive(Deserialize)]
pub(super) struct TakenJob<'a> {
    pub id: &'a str,
    #[serde(borrow)]
    pub input: &'a RawValue,
}

impl TakenJob<'_> {
    /// Whether no worker can read it, nor what comes with it.
    pub fn is_unreadable(&self) -> bool {
        self.input.get().contains(UNREADABLE)
    }
}

/// What a worker posts.
#[derive(Deserialize)]
struct Report<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    output: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    status: Option<&'a RawValue>,
}

/// One chunk in an answer of `/stream`.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow)]
    pub output: &'a RawValue,
}

/// What `/stream` answers on the mount for client libraries.
#[derive(Deserialize)]
pub(super) struct Streamed<'a> {
    pub status: &'a str,
    #[serde(borrow)]
    pub stream: Vec<Chunk<'a>>,
}

/// What `/purge-queue` answers.
#[derive(Deserialize)]
pub(super) struct PurgeResult<'a> {
    pub removed: u64,
    pub status: &'a str,
}

/// What `/health` answers.
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

/// A value that is there, also if it is `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The bytes of a part of a body, without a copy.
pub(super) fn part(body: &Bytes, raw: &RawValue) -> Bytes {
    body.slice_ref(raw.get().as_bytes())
}

/// What a worker's post says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Completed(Option<Bytes>),
    Failed(String, Option<Bytes>),
    Progress(Bytes),
    /// Cannot be read.
    Garbled,
}

/// Reads what a worker posts to `job-done`.
pub(super) fn read_result(body: &Bytes) -> Word {
    let body = &without_foreign_numbers(body);
    let Ok(report) = serde_json::from_slice::<Report<'_>>(body) else { return Word::Garbled };
    let output = report.output.map(|raw| part(body, raw));
    match report.error.and_then(truthy_text) {
        Some(error) => Word::Failed(error, output),
        None if report.status.is_some_and(|status| status.get() == r#""IN_PROGRESS""#) => {
            Word::Progress(output.unwrap_or(Bytes::from_static(b"null")))
        }
        None => Word::Completed(output),
    }
}

/// Reads what a worker posts to `job-stream`: a chunk, or what ends the job.
pub(super) fn read_chunk(body: &Bytes) -> Word {
    let body = &without_foreign_numbers(body);
    let Ok(report) = serde_json::from_slice::<Report<'_>>(body) else { return Word::Garbled };
    match (report.error.and_then(truthy_text), report.output) {
        (Some(error), _) => Word::Failed(error, None),
        (None, Some(output)) => Word::Progress(part(body, output)),
        (None, None) => Word::Garbled,
    }
}

/// The beginning of a text, for people.
pub(super) fn brief(text: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&text[..text.len().min(120)]).into_owned();
    if text.len() > 120 { shown + "…" } else { shown }
}

/// A string's content, or anything else's text.
pub(super) fn plain(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// An error's text; none for what Python takes for nothing.
fn truthy_text(raw: &RawValue) -> Option<String> {
    let is_nothing = match raw.get() {
        "null" | "false" | "\"\"" => true,
        text if text.starts_with(['[', '{']) => text[1..text.len() - 1].trim().is_empty(),
        text => text.parse::<f64>().is_ok_and(|number| number == 0.0),
    };
    (!is_nothing).then(|| plain(raw))
}

/// `null` for every number that Python writes and JSON does not know.
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
