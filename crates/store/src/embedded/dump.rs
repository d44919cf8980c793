//! Prints the records of a log as lines of JSON, for debugging. Changes nothing and takes no lock: records that are written
//! meanwhile may be missing.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use longshore_model::JobKey;
use serde_json::{Value, json};

use super::error::corrupt;
use super::log::format::SEGMENT_HEADER_BYTES;
use super::log::names;
use super::log::payload::PayloadRef;
use super::log::record::{Record, each};
use super::log::segment::SegmentHeader;
use super::log::{attempt_row, job_row};
use super::recovery::scan::{ReadWindow, frame_at};
use crate::StoreError;

/// Writes a line of JSON for every record in the log of the data directory `dir`, in the order of writing: its place and
/// its fields. Shows only the lengths of payloads and the ids of catalog values, which may contain secrets.
///
/// # Errors
/// If the log cannot be read, a record is malformed, or `out` fails.
pub fn dump(dir: &Path, out: &mut impl Write) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Io(format!("cannot read the log: {error}"));
    let log = dir.join(names::LOG);
    let mut segments = Vec::new();
    for number in names::numbers_in(&log).map_err(failed)? {
        let file = File::open(log.join(names::segment(number))).map_err(failed)?;
        segments.push((SegmentHeader::read(&file, number)?, file));
    }
    for at in 0..segments.len() {
        let (header, file) = &segments[at];
        let sealed = segments.get(at + 1).map(|(seal, _)| seal.previous_end);
        let end = sealed.map_or_else(|| file.metadata().map(|data| data.len()), Ok).map_err(failed)?;
        segment(header, &mut ReadWindow::new(file, end), out)?;
    }
    Ok(())
}

fn segment(
    header: &SegmentHeader,
    window: &mut ReadWindow<'_>,
    out: &mut impl Write,
) -> Result<(), StoreError> {
    let failed = |error: io::Error| StoreError::Io(error.to_string());
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some(found) = frame_at(window, header.salt, at).map_err(failed)? {
        for raw in each(found.records, 0) {
            let malformed = |malformed| corrupt(header.number, found.records_at, malformed);
            let raw = raw.map_err(malformed)?;
            let record = raw.parse().map_err(malformed)?;
            let place = json!([header.number, at, found.records_at + raw.at as u32]);
            writeln!(out, "{}", json!({ "at": place, "is": say(&record) })).map_err(failed)?;
        }
        at = found.end;
    }
    Ok(())
}

fn say(record: &Record<'_>) -> Value {
    match record {
        Record::Job(key, body) => match job_row::decode(*key, body) {
            Ok(row) => json!({
                "job": job(*key), "id": row.id, "state": row.state, "attempt": row.attempt.0, "retries": row.retries,
                "worker": row.worker, "createdAt": row.created_at, "startedAt": row.started_at,
                "finishedAt": row.finished_at, "deleteAt": row.delete_at, "inputBytes": row.input_bytes,
                "owner": row.submitter.owner, "key": row.submitter.key.map(|key| key.to_string()),
            }),
            Err(malformed) => json!({ "job": job(*key), "malformed": malformed.to_string() }),
        },
        Record::Input(key, kept) => json!({ "input": job(*key), "payload": payload(kept) }),
        Record::Outcome(key, outcome) => json!({
            "outcome": job(*key), "output": outcome.output.as_ref().map(payload),
            "errorBytes": outcome.error.map(str::len),
        }),
        Record::Chunk(key, offset, kept) => {
            json!({ "chunk": job(*key), "offset": offset, "payload": payload(kept) })
        }
        Record::Attempt(key, n, body) => match attempt_row::decode(*n, body) {
            Ok(attempt) => json!({
                "attempt": job(*key), "n": n.0, "worker": attempt.worker, "gpu": attempt.gpu, "end": attempt.end.as_str(),
                "takenAt": attempt.taken_at, "endedAt": attempt.ended_at, "reasonBytes": attempt.reason.len(),
            }),
            Err(malformed) => json!({ "attempt": job(*key), "malformed": malformed.to_string() }),
        },
        Record::Stream(key, stream) => {
            json!({ "stream": job(*key), "next": stream.next, "drained": stream.consumed })
        }
        Record::Webhook(hook) => {
            json!({ "hook": job(hook.job), "attempts": hook.attempts, "dueAt": hook.due_at })
        }
        Record::JobsDeleted(key, count) => json!({ "jobsGone": job(*key), "count": count }),
        Record::OutcomeDeleted(key) => json!({ "outcomeGone": job(*key) }),
        Record::ChunksDeleted(key) => json!({ "chunksGone": job(*key) }),
        Record::StreamDeleted(key) => json!({ "streamGone": job(*key) }),
        Record::WebhookDeleted(key) => json!({ "hookGone": job(*key) }),
        Record::Counters(endpoint, counters) => json!({
            "counters": endpoint, "completed": counters.completed, "failed": counters.failed,
            "retried": counters.retried, "cancelled": counters.cancelled,
            "reservedSeq": counters.reserved_seq, "purgedUntil": counters.purged_until,
        }),
        Record::Value { class, id, rank, value } => json!({
            "value": id_of(id), "class": class, "rank": rank, "bytes": value.len(),
        }),
        Record::ValueDeleted(class, id) => json!({ "valueGone": id_of(id), "class": class }),
        Record::LastEndpoint(no) => json!({ "lastEndpoint": no }),
        Record::Epoch(shard, epoch) => json!({ "shard": shard.0, "epoch": epoch.0 }),
        Record::LogStart(number) => json!({ "oldestSegment": number }),
    }
}

fn job(key: JobKey) -> Value {
    json!([key.endpoint, key.seq])
}

fn id_of(id: &[u8]) -> Value {
    match id.try_into() {
        Ok(number) if id[0] == 0 => json!(u32::from_be_bytes(number)),
        _ => json!(String::from_utf8_lossy(id)),
    }
}

fn payload(kept: &PayloadRef<'_>) -> Value {
    match kept {
        PayloadRef::Inline(bytes) => json!({ "bytes": bytes.len() }),
        PayloadRef::OutOfLine(beside) => json!({ "bytes": beside.bytes, "beside": true }),
        PayloadRef::Blob(name, bytes) => json!({ "bytes": bytes, "file": name }),
    }
}
