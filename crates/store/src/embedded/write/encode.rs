//! Encodes the writes of a batch as log records.

use longshore_model::{Counters, Endpoint, EndpointNo, Epoch, JobKey, ShardId};
use serde::Serialize;

use super::creation_order::CreationOrder;
use crate::embedded::log::coding::{put_bytes, put_number};
use crate::embedded::log::format::{class, kind};
use crate::embedded::log::frame::Frame;
use crate::embedded::log::payload;
use crate::embedded::log::record::{ENDPOINT_NO_MAX, ERROR, OUTPUT};
use crate::embedded::log::{attempt_row, job_row};
use crate::{OutcomeRow, StoreError, Write};

/// Bytes that the records of one batch may have. Offsets within a segment are 32 bits.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// Adds the writes to the frame, all or none.
pub(in crate::embedded) fn batch(
    frame: &mut Frame,
    ranks: &mut CreationOrder,
    writes: &[Write],
) -> Result<(), StoreError> {
    let (frame_before, ranks_before) = (frame.mark(), ranks.mark());
    let bytes_before = frame.bytes();
    let result = all(frame, ranks, writes).and_then(|()| match frame.bytes() - bytes_before {
        bytes if bytes > BATCH_BYTES_MAX => {
            Err(refused(format_args!("its records have {bytes} bytes, the limit is {BATCH_BYTES_MAX}")))
        }
        _ => Ok(()),
    });
    if result.is_err() {
        frame.back_to(frame_before);
        ranks.roll_back_to(ranks_before);
    }
    result
}

/// Adds the record of a shard's epoch.
pub(in crate::embedded) fn epoch(frame: &mut Frame, shard: ShardId, epoch: Epoch) {
    frame.body().push(shard.0);
    put_number(frame.body(), epoch.0);
    frame.end_record(kind::EPOCH);
}

/// Adds the record that makes `segment` the first one of the log.
pub(in crate::embedded) fn log_start(frame: &mut Frame, segment: u64) {
    put_number(frame.body(), segment);
    frame.end_record(kind::LOG_START);
}

fn refused(what: impl std::fmt::Display) -> StoreError {
    StoreError::Io(format!("the batch cannot be written: {what}"))
}

fn all(frame: &mut Frame, ranks: &mut CreationOrder, writes: &[Write]) -> Result<(), StoreError> {
    let mut writes = writes.iter().peekable();
    while let Some(write) = writes.next() {
        let Write::DeleteJob(first) = write else {
            one(frame, ranks, write)?;
            continue;
        };
        // Expiry and purge remove hundreds of neighbouring jobs: one record for each run of sequence numbers.
        let mut count = 1;
        while let Some(Write::DeleteJob(next)) = writes.peek()
            && next.endpoint == first.endpoint
            && Some(next.seq) == first.seq.checked_add(count)
        {
            count += 1;
            writes.next();
        }
        put_job(frame.body(), JobKey { seq: first.seq.saturating_add(count - 1), ..*first })?;
        frame.body().clear();
        put_job(frame.body(), *first)?;
        put_number(frame.body(), count);
        frame.end_record(kind::JOBS_DELETED);
    }
    Ok(())
}

fn one(frame: &mut Frame, ranks: &mut CreationOrder, write: &Write) -> Result<(), StoreError> {
    match write {
        Write::PutEndpoint(endpoint) => put_endpoint(frame, ranks, endpoint)?,
        Write::PutTemplate(template) => {
            put_value(frame, ranks, class::TEMPLATE, template.id.as_str().as_bytes(), &json(&**template)?);
        }
        Write::PutKey(key) => put_value(frame, ranks, class::KEY, key.id.as_bytes(), &json(&**key)?),
        Write::PutSetting(name, value) => put_value(frame, ranks, class::SETTING, name.as_bytes(), value),
        Write::PutJsonRow(kind, id, json) => {
            put_value(frame, ranks, class::JSON_ROW + kind.number(), id.as_bytes(), json);
        }
        Write::DeleteEndpoint(endpoint) => {
            value_deleted(frame, ranks, class::ENDPOINT, &endpoint.0.to_be_bytes());
        }
        Write::DeleteTemplate(id) => value_deleted(frame, ranks, class::TEMPLATE, id.as_str().as_bytes()),
        Write::DeleteKey(id) => value_deleted(frame, ranks, class::KEY, id.as_bytes()),
        Write::DeleteJsonRow(kind, id) => {
            value_deleted(frame, ranks, class::JSON_ROW + kind.number(), id.as_bytes());
        }
        Write::PutCounters(endpoint, counters) => put_counters(frame, *endpoint, counters),
        job_write => {
            let kind = job_record(frame, job_write)?;
            frame.end_record(kind);
        }
    }
    Ok(())
}

/// Writes the body of a record about one job. Returns the kind of the record.
fn job_record(frame: &mut Frame, write: &Write) -> Result<u8, StoreError> {
    let mut put_key = |job: JobKey| put_job(frame.body(), job);
    let kind = match write {
        Write::PutJob(row) => {
            put_key(row.key)?;
            job_row::put(frame.body(), row);
            kind::JOB
        }
        Write::PutInput(job, input) => {
            put_key(*job)?;
            payload::put(frame, input);
            kind::INPUT
        }
        Write::PutOutcome(job, outcome) => {
            put_key(*job)?;
            put_outcome(frame, outcome);
            kind::OUTCOME
        }
        Write::AppendChunk(job, chunk) => {
            put_key(*job)?;
            put_number(frame.body(), chunk.offset);
            payload::put_inline(frame, &chunk.bytes);
            kind::CHUNK
        }
        Write::PutAttempt(job, attempt) => {
            put_key(*job)?;
            put_number(frame.body(), u64::from(attempt.n.0));
            attempt_row::put(frame.body(), attempt);
            kind::ATTEMPT
        }
        Write::PutStream(job, stream) => {
            put_key(*job)?;
            put_number(frame.body(), stream.next);
            put_number(frame.body(), stream.consumed);
            if !stream.posts.is_empty() {
                frame.body().extend_from_slice(&stream.posts.to_stored());
            }
            kind::STREAM
        }
        Write::PutWebhook(hook) => {
            put_key(hook.job)?;
            put_number(frame.body(), u64::from(hook.attempts));
            put_number(frame.body(), hook.due_at.0);
            kind::WEBHOOK
        }
        Write::ClearOutcome(job) => put_key(*job).map(|()| kind::OUTCOME_DELETED)?,
        Write::DropChunks(job) => put_key(*job).map(|()| kind::CHUNKS_DELETED)?,
        Write::DeleteStream(job) => put_key(*job).map(|()| kind::STREAM_DELETED)?,
        Write::DeleteWebhook(job) => put_key(*job).map(|()| kind::WEBHOOK_DELETED)?,
        other => return Err(refused(format_args!("{other:?} is about no job"))),
    };
    Ok(kind)
}

fn put_job(out: &mut Vec<u8>, job: JobKey) -> Result<(), StoreError> {
    if job.endpoint.0 > ENDPOINT_NO_MAX || job.seq > JobKey::SEQ_MAX {
        return Err(refused(format_args!("{job:?} is out of range")));
    }
    put_number(out, u64::from(job.endpoint.0));
    put_number(out, job.seq);
    Ok(())
}

fn put_outcome(frame: &mut Frame, outcome: &OutcomeRow) {
    let flag = |set, flag| if set { flag } else { 0 };
    let flags = flag(outcome.output.is_some(), OUTPUT) | flag(outcome.error.is_some(), ERROR);
    frame.body().push(flags);
    if let Some(output) = &outcome.output {
        payload::put(frame, output);
    }
    if let Some(error) = &outcome.error {
        put_bytes(frame.body(), error.as_bytes());
    }
}

fn put_counters(frame: &mut Frame, endpoint: EndpointNo, counters: &Counters) {
    let Counters { completed, failed, retried, cancelled, reserved_seq, purged_until } = *counters;
    put_number(frame.body(), u64::from(endpoint.0));
    for count in [completed, failed, retried, cancelled, reserved_seq, purged_until.0] {
        put_number(frame.body(), count);
    }
    frame.end_record(kind::COUNTERS);
}

fn put_endpoint(frame: &mut Frame, ranks: &mut CreationOrder, endpoint: &Endpoint) -> Result<(), StoreError> {
    put_value(frame, ranks, class::ENDPOINT, &endpoint.no.0.to_be_bytes(), &json(endpoint)?);
    if ranks.note_endpoint(endpoint.no) {
        put_number(frame.body(), u64::from(endpoint.no.0));
        frame.end_record(kind::LAST_ENDPOINT);
    }
    Ok(())
}

fn put_value(frame: &mut Frame, ranks: &mut CreationOrder, class: u8, id: &[u8], value: &[u8]) {
    let rank = ranks.rank(class, id);
    frame.body().push(class);
    put_number(frame.body(), rank);
    put_bytes(frame.body(), id);
    frame.body().extend_from_slice(value);
    frame.end_record(kind::VALUE);
}

fn value_deleted(frame: &mut Frame, ranks: &mut CreationOrder, class: u8, id: &[u8]) {
    ranks.remove(class, id);
    frame.body().push(class);
    frame.body().extend_from_slice(id);
    frame.end_record(kind::VALUE_DELETED);
}

fn json(record: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(record).map_err(refused)
}
