//! The rows as values, and the batch that changes them.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use longshore_model::{
    ApiKey, Counters, Durability, Endpoint, EndpointNo, JobKey, JobRow, JsonRowKind, Millis, Template,
};

use crate::BlobRef;

/// Changes that are kept together or not at all, applied in order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The strongest that any change in the batch asks for.
    pub durability: Durability,
    /// The changes.
    pub writes: Vec<Write>,
    /// What it rests on, see [`Store::commit`](crate::Store::commit); none for who waits for every answer.
    pub chain: Option<u64>,
}

/// One change of one row.
#[derive(Clone, Debug)]
pub enum Write {
    /// Inserts a job or replaces its row.
    PutJob(Box<JobRow>),
    /// Removes a job with its input, outcome, stream, chunks and hook. No such job: nothing happens.
    DeleteJob(JobKey),
    /// Keeps a job's input: the members of the submitted JSON object, without the outer braces.
    PutInput(JobKey, Payload),
    /// Replaces a job's outcome.
    PutOutcome(JobKey, OutcomeRow),
    /// Removes a job's outcome.
    ClearOutcome(JobKey),
    /// Adds a chunk; its offset is larger than that of every chunk before.
    AppendChunk(JobKey, ChunkRow),
    /// Removes a job's chunks; its stream row stays.
    DropChunks(JobKey),
    /// Replaces a job's stream row.
    PutStream(JobKey, StreamRow),
    /// Removes a job's stream row and chunks.
    DeleteStream(JobKey),
    /// Replaces what is owed to a job's webhook.
    PutWebhook(WebhookRow),
    /// Nothing is owed any more.
    DeleteWebhook(JobKey),
    /// Replaces an endpoint's counters.
    PutCounters(EndpointNo, Counters),
    /// Inserts or replaces an endpoint.
    PutEndpoint(Box<Endpoint>),
    /// Removes an endpoint's record and counters (its jobs are removed before, in slices).
    DeleteEndpoint(EndpointNo),
    /// Inserts or replaces a template.
    PutTemplate(Box<Template>),
    /// Removes a template.
    DeleteTemplate(longshore_model::TemplateId),
    /// Inserts or replaces a key.
    PutKey(Box<ApiKey>),
    /// Removes the key with this id.
    DeleteKey(String),
    /// Inserts or replaces a named setting of the installation.
    PutSetting(String, Bytes),
    /// Inserts or replaces the small record of this kind with this id. The bytes are JSON, and the store's caller's
    /// business.
    PutJsonRow(JsonRowKind, String, Bytes),
    /// Removes the small record of this kind with this id.
    DeleteJsonRow(JsonRowKind, String),
}

/// Bytes that belong to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// In the row itself.
    Inline(Bytes),
    /// In a file beside the store; the row holds the reference.
    Blob(BlobRef),
}

/// How a job's run came out, or how far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutcomeRow {
    /// The output as JSON text, byte for byte; the latest progress value while the job runs.
    pub output: Option<Payload>,
    /// The error as plain text (not JSON).
    pub error: Option<Box<str>>,
}

/// Where a job's stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRow {
    /// The offset that the next chunk gets.
    pub next: u64,
    /// Chunks below this offset were drained by a plain poll.
    pub consumed: u64,
}

/// One chunk of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRow {
    /// Its number, from 0 per job.
    pub offset: u64,
    /// Its JSON text as the worker sent it.
    pub bytes: Bytes,
}

/// A webhook call that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebhookRow {
    /// The job it reports.
    pub job: JobKey,
    /// Attempts made so far.
    pub attempts: u32,
    /// When the next one is due.
    pub due_at: Millis,
}

/// A small record: JSON that the store keeps and does not read.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonRow {
    /// What it is about.
    pub kind: JsonRowKind,
    /// Its id, unique within the kind.
    pub id: String,
    /// The record as JSON text.
    pub json: Bytes,
}

impl fmt::Debug for JsonRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON may hold secrets.
        f.debug_struct("RecordRow").field("kind", &self.kind).field("id", &self.id).finish_non_exhaustive()
    }
}

/// What is not a job: small, read once at start.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Endpoints, those being deleted included.
    pub endpoints: Vec<Endpoint>,
    /// Templates.
    pub templates: Vec<Template>,
    /// Keys.
    pub keys: Vec<ApiKey>,
    /// Small records of every kind, in the order of creation within a kind.
    pub json_rows: Vec<JsonRow>,
    /// Settings of the installation by name.
    pub settings: BTreeMap<String, Bytes>,
    /// The largest endpoint number that was ever given out; 0 before the first.
    pub last_endpoint_no: u32,
}
