//! The rows as values, and the batch that changes them.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use longshore_model::{
    ApiKey, Counters, Durability, EndedAttempt, Endpoint, EndpointNo, JobKey, JobRow, JsonRowKind, LastPosts,
    Millis, Template,
};

use crate::BlobRef;

/// Writes that are committed together or not at all, applied in order. All belong to one shard.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The strongest durability that any write of the batch needs.
    pub durability: Durability,
    /// The writes, in the order in which they take effect.
    pub writes: Vec<Write>,
    /// The commit chain, see [`Store::commit`](crate::Store::commit). `None` for a sender with one batch in flight at a
    /// time: the batch depends on no other.
    pub chain: Option<u64>,
}

/// One change of one row.
#[derive(Clone, Debug)]
pub enum Write {
    /// Inserts a job or replaces its row.
    PutJob(Box<JobRow>),
    /// Removes a job with its input, outcome, ended attempts, stream, chunks and webhook call. Without such a job nothing happens.
    DeleteJob(JobKey),
    /// Stores a job's input: the members of the submitted JSON object, without the outer braces.
    PutInput(JobKey, Payload),
    /// Inserts or replaces a job's output and error.
    PutOutcome(JobKey, OutcomeRow),
    /// Removes a job's output and error.
    ClearOutcome(JobKey),
    /// Inserts or replaces an ended attempt of a job, by its number. The store keeps the
    /// [`ATTEMPTS_MAX`](longshore_model::limits::ATTEMPTS_MAX) attempts with the largest numbers.
    PutAttempt(JobKey, Box<EndedAttempt>),
    /// Adds a chunk. Its offset must be larger than that of every stored chunk of the job.
    AppendChunk(JobKey, ChunkRow),
    /// Removes a job's chunks; its stream row stays.
    DropChunks(JobKey),
    /// Inserts or replaces a job's stream row.
    PutStream(JobKey, StreamRow),
    /// Removes a job's stream row and chunks.
    DeleteStream(JobKey),
    /// Inserts or replaces a job's pending webhook call.
    PutWebhook(WebhookRow),
    /// Removes a job's pending webhook call.
    DeleteWebhook(JobKey),
    /// Inserts or replaces an endpoint's counters.
    PutCounters(EndpointNo, Counters),
    /// Inserts or replaces an endpoint.
    PutEndpoint(Box<Endpoint>),
    /// Removes an endpoint and its counters. Earlier batches removed its jobs.
    DeleteEndpoint(EndpointNo),
    /// Inserts or replaces a template, by its id.
    PutTemplate(Box<Template>),
    /// Removes the template with this id.
    DeleteTemplate(longshore_model::TemplateId),
    /// Inserts or replaces an API key, by its id.
    PutKey(Box<ApiKey>),
    /// Removes the API key with this id.
    DeleteKey(String),
    /// Inserts or replaces a named setting of the installation.
    PutSetting(String, Bytes),
    /// Inserts or replaces the JSON row of this kind with this id. The store does not parse the bytes.
    PutJsonRow(JsonRowKind, String, Bytes),
    /// Removes the JSON row of this kind with this id.
    DeleteJsonRow(JsonRowKind, String),
}

/// A line of a log that is in the same database as the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The name of the log.
    pub log: &'static str,
    /// The place of the line in its log; larger numbers are later lines.
    pub no: u64,
    /// The bytes of the line, without a newline.
    pub line: Bytes,
}

/// The bytes of a job's input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The bytes are in the log record itself.
    Inline(Bytes),
    /// The bytes are in a file beside the log; the row has its name and length.
    Blob(BlobRef),
}

/// A job's output and error as stored. While the job runs: its latest progress value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The output as JSON text, byte for byte; the latest progress value while the job runs.
    pub output: Option<Payload>,
    /// The error as plain text (not JSON).
    pub error: Option<Box<str>>,
}

/// The offsets of a job's stream, and the posts by which a repeated one is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRow {
    /// The offset that the next chunk gets.
    pub next: u64,
    /// The consumed offset: chunks below it were read by a destructive `/stream` poll.
    pub consumed: u64,
    /// The last posts that had a number. A row that follows one with numbers has some, too, unless the stream was deleted.
    pub posts: LastPosts,
}

/// One chunk of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRow {
    /// The chunk's number, from 0 per job.
    pub offset: u64,
    /// The chunk's JSON text as the worker sent it.
    pub bytes: Bytes,
}

/// A pending webhook call. At most one per job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookRow {
    /// The job whose end is reported.
    pub job: JobKey,
    /// The number of attempts made.
    pub attempts: u32,
    /// The time from which the next attempt is due.
    pub due_at: Millis,
}

/// A small row of JSON, which the store does not parse.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonRow {
    /// The kind of resource that the row describes.
    pub kind: JsonRowKind,
    /// The id, unique within the kind.
    pub id: String,
    /// The value as JSON text.
    pub json: Bytes,
}

impl fmt::Debug for JsonRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON may hold secrets.
        f.debug_struct("JsonRow").field("kind", &self.kind).field("id", &self.id).finish_non_exhaustive()
    }
}

/// All resources, JSON rows and settings. Read once, at start.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Endpoints in the order of creation, those being deleted included.
    pub endpoints: Vec<Endpoint>,
    /// Templates in the order of creation.
    pub templates: Vec<Template>,
    /// API keys in the order of creation.
    pub keys: Vec<ApiKey>,
    /// JSON rows of every kind, in the order of creation within a kind.
    pub json_rows: Vec<JsonRow>,
    /// Settings of the installation by name.
    pub settings: BTreeMap<String, Bytes>,
    /// The largest endpoint number that was ever assigned, 0 before the first. Numbers of deleted endpoints count.
    pub last_endpoint_no: u32,
}
