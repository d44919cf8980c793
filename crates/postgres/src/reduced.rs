//! A batch reduced to what it leaves: the last state of each row that it writes, because a statement can change a row once.

use std::collections::BTreeMap;

use bytes::Bytes;
use longshore_model::{Attempt, Counters, EndedAttempt, EndpointNo, JobKey, JobRow};
use longshore_store::{ChunkRow, OutcomeRow, Payload, StoreError, StreamRow, WebhookRow, Write};
use serde::Serialize;

use crate::values::{class, json_row_class};

/// The largest number of an endpoint: keys of jobs have 23 bits for it.
const ENDPOINT_NO_MAX: u32 = (1 << 23) - 1;
/// Bytes of payloads in one batch. PostgreSQL takes at most 1 GiB in one message.
const BATCH_BYTES_MAX: usize = 512 << 20;

/// What a batch leaves behind, by row.
#[derive(Debug, Default)]
pub(crate) struct Reduced {
    /// By the key of the job.
    pub jobs: BTreeMap<i64, JobChange>,
    /// The counters, by the endpoint's number; `None` if they are deleted.
    pub counters: BTreeMap<u32, Option<Counters>>,
    /// Deleted values of the catalog, as class and id. They are deleted before the others are put.
    pub values_deleted: Vec<(i16, Bytes)>,
    /// Values of the catalog, as class, id and value, in the order of creation.
    pub values: Vec<(i16, Bytes, Bytes)>,
    /// The largest number of the endpoints that the batch puts; 0 without one.
    pub last_endpoint_no: u32,
    /// The size of all payloads, in bytes.
    bytes: usize,
}

/// What a batch leaves of a part of a job.
#[derive(Debug)]
pub(crate) enum Part<T> {
    Put(T),
    Deleted,
}

/// What a batch leaves of one job. A part that is `None` stays as it is stored.
#[derive(Debug, Default)]
pub(crate) struct JobChange {
    /// Whether everything stored is deleted first.
    pub is_deleted: bool,
    /// The row of the job, the last one that was put.
    pub row: Option<Box<JobRow>>,
    /// The input of the job, the last one that was put.
    pub input: Option<Payload>,
    /// The job's output and error.
    pub outcome: Option<Part<OutcomeRow>>,
    /// Ended attempts, by number.
    pub attempts: BTreeMap<Attempt, Box<EndedAttempt>>,
    /// Whether the stored chunks are deleted first.
    pub are_chunks_dropped: bool,
    /// New chunks, in the order in which they were appended.
    pub chunks: Vec<ChunkRow>,
    /// The offsets of the stream, or their deletion.
    pub stream: Option<Part<StreamRow>>,
    /// The pending webhook call.
    pub webhook: Option<Part<WebhookRow>>,
}

impl Reduced {
    /// Reduces the writes, in their order.
    ///
    /// # Errors
    /// [`StoreError::Io`] if a key is out of range or the payloads have more than 512 MiB. Nothing is to be written then.
    pub(crate) fn new(writes: Vec<Write>) -> Result<Self, StoreError> {
        let mut reduced = Self::default();
        for write in writes {
            reduced.add(write)?;
        }
        if reduced.bytes > BATCH_BYTES_MAX {
            return Err(refused(format_args!(
                "its payloads have {} bytes, the limit is {BATCH_BYTES_MAX}",
                reduced.bytes
            )));
        }
        Ok(reduced)
    }

    fn add(&mut self, write: Write) -> Result<(), StoreError> {
        match write {
            Write::PutCounters(endpoint, counters) => drop(self.counters.insert(endpoint.0, Some(counters))),
            Write::PutEndpoint(endpoint) => {
                self.last_endpoint_no = self.last_endpoint_no.max(endpoint.no.0);
                self.put_value(class::ENDPOINT, endpoint_id(endpoint.no), json(&endpoint)?);
            }
            Write::DeleteEndpoint(endpoint) => {
                self.delete_value(class::ENDPOINT, endpoint_id(endpoint));
                self.counters.insert(endpoint.0, None);
            }
            Write::PutTemplate(template) => {
                self.put_value(class::TEMPLATE, text_id(template.id.as_str()), json(&template)?);
            }
            Write::DeleteTemplate(id) => self.delete_value(class::TEMPLATE, text_id(id.as_str())),
            Write::PutKey(key) => self.put_value(class::KEY, text_id(&key.id), json(&key)?),
            Write::DeleteKey(id) => self.delete_value(class::KEY, text_id(&id)),
            Write::PutSetting(name, value) => self.put_value(class::SETTING, text_id(&name), value),
            Write::PutJsonRow(kind, id, json) => self.put_value(json_row_class(kind), text_id(&id), json),
            Write::DeleteJsonRow(kind, id) => self.delete_value(json_row_class(kind), text_id(&id)),
            job_write => self.add_job_write(job_write)?,
        }
        Ok(())
    }

    fn add_job_write(&mut self, write: Write) -> Result<(), StoreError> {
        match write {
            Write::PutJob(row) => {
                let key = row.key;
                self.job(key)?.row = Some(row);
            }
            Write::DeleteJob(job) => *self.job(job)? = JobChange { is_deleted: true, ..JobChange::default() },
            Write::PutInput(job, input) => {
                self.bytes += inline_bytes(&input);
                self.job(job)?.input = Some(input);
            }
            Write::PutOutcome(job, outcome) => {
                let error_bytes = outcome.error.as_ref().map_or(0, |error| error.len());
                self.bytes += error_bytes + outcome.output.as_ref().map_or(0, inline_bytes);
                self.job(job)?.outcome = Some(Part::Put(outcome));
            }
            Write::ClearOutcome(job) => self.job(job)?.outcome = Some(Part::Deleted),
            Write::PutAttempt(job, attempt) => {
                self.job(job)?.attempts.insert(attempt.n, attempt);
            }
            Write::AppendChunk(job, chunk) => {
                self.bytes += chunk.bytes.len();
                self.job(job)?.chunks.push(chunk);
            }
            Write::DropChunks(job) => self.drop_chunks(job)?,
            Write::PutStream(job, stream) => self.job(job)?.stream = Some(Part::Put(stream)),
            Write::DeleteStream(job) => {
                self.drop_chunks(job)?;
                self.job(job)?.stream = Some(Part::Deleted);
            }
            Write::PutWebhook(webhook) => self.job(webhook.job)?.webhook = Some(Part::Put(webhook)),
            Write::DeleteWebhook(job) => self.job(job)?.webhook = Some(Part::Deleted),
            other => return Err(refused(format_args!("{other:?} is about no job"))),
        }
        Ok(())
    }

    fn job(&mut self, job: JobKey) -> Result<&mut JobChange, StoreError> {
        if job.endpoint.0 > ENDPOINT_NO_MAX || job.seq > JobKey::SEQ_MAX {
            return Err(refused(format_args!("{job:?} is out of range")));
        }
        Ok(self.jobs.entry(job.to_row()).or_default())
    }

    fn drop_chunks(&mut self, job: JobKey) -> Result<(), StoreError> {
        let change = self.job(job)?;
        change.are_chunks_dropped = true;
        change.chunks.clear();
        Ok(())
    }

    /// A value that is put twice keeps the place of the first.
    fn put_value(&mut self, class: i16, id: Bytes, value: Bytes) {
        self.bytes += value.len();
        match self.values.iter_mut().find(|(other, other_id, _)| *other == class && *other_id == id) {
            Some(present) => present.2 = value,
            None => self.values.push((class, id, value)),
        }
    }

    fn delete_value(&mut self, class: i16, id: Bytes) {
        self.values.retain(|(other, other_id, _)| (*other, other_id) != (class, &id));
        self.values_deleted.push((class, id));
    }
}

fn endpoint_id(no: EndpointNo) -> Bytes {
    Bytes::copy_from_slice(&no.0.to_be_bytes())
}

fn text_id(id: &str) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

fn inline_bytes(payload: &Payload) -> usize {
    match payload {
        Payload::Inline(bytes) => bytes.len(),
        Payload::Blob(_) => 0,
    }
}

fn json(value: &impl Serialize) -> Result<Bytes, StoreError> {
    serde_json::to_vec(value).map(Bytes::from).map_err(refused)
}

fn refused(what: impl std::fmt::Display) -> StoreError {
    StoreError::Io(format!("the batch cannot be written: {what}"))
}
