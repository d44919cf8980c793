//! Encodes and decodes the body of a job's row, behind the job's key:
//!
//! 1. 2 bytes of flags, a byte of state, 16 bytes of id, *n* time of creation.
//! 2. Signed distances: time of queueing (from creation), start (from queueing; if flagged), end (from creation; if
//!    flagged), deletion (from creation), position in the queue (from the sequence number).
//! 3. *n* attempts, *n* ttl, *n* execution timeout, *n* bytes of input.
//! 4. If flagged, in this order: a byte of retries and a byte of redeliveries; the worker as text; the idempotency key as
//!    text and 16 bytes of fingerprint; *n* bytes of optional fields, as in `job_fields.rs`.

use longshore_model::{Attempt, Idempotency, JobId, JobKey, JobRow, JobState, Millis};

use super::coding::{Decoder, Malformed, put_bytes, put_number, put_signed};
use super::job_fields;

const SYNC: u16 = 1;
const LOW_PRIORITY: u16 = 1 << 1;
const NEVER_TAKEN: u16 = 1 << 2;
const TTL_PINNED: u16 = 1 << 3;
const WEBHOOK: u16 = 1 << 4;
const WEBHOOK_PENDING: u16 = 1 << 5;
const STARTED: u16 = 1 << 6;
const FINISHED: u16 = 1 << 7;
const REDELIVERED: u16 = 1 << 8;
const WORKER: u16 = 1 << 9;
const IDEMPOTENCY: u16 = 1 << 10;
/// The row has optional fields, see `job_fields.rs`. Every later field is one of them: the flags and numbers here are final.
const MORE: u16 = 1 << 11;
const KNOWN: u16 = (1 << 12) - 1;

/// Appends the body of a row, behind its key.
pub(in crate::embedded) fn put(out: &mut Vec<u8>, row: &JobRow) {
    let fields = job_fields::encode(row);
    out.extend_from_slice(&flags(row, !fields.is_empty()).to_le_bytes());
    out.push(row.state as u8);
    out.extend_from_slice(&row.id.raw());
    put_number(out, row.created_at.0);
    put_distance(out, row.created_at, row.enqueued_at);
    if row.started_at.0 != 0 {
        put_distance(out, row.enqueued_at, row.started_at);
    }
    if row.finished_at.0 != 0 {
        put_distance(out, row.created_at, row.finished_at);
    }
    put_distance(out, row.created_at, row.delete_at);
    put_signed(out, row.order.wrapping_sub(row.key.seq as i64));
    for number in [row.attempt.0, row.ttl_ms, row.execution_timeout_ms, row.input_bytes] {
        put_number(out, u64::from(number));
    }
    if redelivered(row) {
        out.extend_from_slice(&[row.retries, row.redeliveries]);
    }
    if let Some(worker) = &row.worker {
        put_bytes(out, worker.as_str().as_bytes());
    }
    if let Some(idempotency) = &row.idempotency {
        put_bytes(out, idempotency.key.as_bytes());
        out.extend_from_slice(&idempotency.fingerprint);
    }
    if !fields.is_empty() {
        put_bytes(out, &fields);
    }
}

fn flags(row: &JobRow, has_fields: bool) -> u16 {
    [
        (SYNC, row.id.is_sync()),
        (LOW_PRIORITY, row.low_priority),
        (NEVER_TAKEN, row.never_taken),
        (TTL_PINNED, row.ttl_pinned),
        (WEBHOOK, row.webhook),
        (WEBHOOK_PENDING, row.webhook_pending),
        (STARTED, row.started_at.0 != 0),
        (FINISHED, row.finished_at.0 != 0),
        (REDELIVERED, redelivered(row)),
        (WORKER, row.worker.is_some()),
        (IDEMPOTENCY, row.idempotency.is_some()),
        (MORE, has_fields),
    ]
    .into_iter()
    .fold(0, |flags, (flag, set)| if set { flags | flag } else { flags })
}

fn redelivered(row: &JobRow) -> bool {
    (row.retries, row.redeliveries) != (0, 0)
}

fn put_distance(out: &mut Vec<u8>, from: Millis, to: Millis) {
    put_signed(out, to.0.wrapping_sub(from.0) as i64);
}

/// Decodes the body of the row of `key`.
pub(in crate::embedded) fn decode(key: JobKey, body: &[u8]) -> Result<JobRow, Malformed> {
    let mut at = Decoder::new(body);
    let flags = u16::from_le_bytes(at.array("flags")?);
    if flags & !KNOWN != 0 {
        return Err(Malformed(
            "known flags; a newer version wrote the row: start that version, or a newer one",
        ));
    }
    let set = |flag| flags & flag != 0;
    let state = JobState::from_number(at.byte("state")?).ok_or(Malformed("a known state"))?;
    let id = JobId::from_parts(at.array("id")?, set(SYNC));
    let created_at = Millis(at.number("time of creation")?);
    let enqueued_at = distance(&mut at, created_at)?;
    let started_at = if set(STARTED) { distance(&mut at, enqueued_at)? } else { Millis(0) };
    let finished_at = if set(FINISHED) { distance(&mut at, created_at)? } else { Millis(0) };
    let delete_at = distance(&mut at, created_at)?;
    let order = at.signed("place in the queue")?.wrapping_add(key.seq as i64);
    let attempt = Attempt(at.small("attempts")?);
    let ttl_ms = at.small("ttl")?;
    let execution_timeout_ms = at.small("execution timeout")?;
    let input_bytes = at.small("bytes of input")?;
    let (retries, redeliveries) =
        if set(REDELIVERED) { (at.byte("retries")?, at.byte("redeliveries")?) } else { (0, 0) };
    let worker = if set(WORKER) { Some(at.text("worker")?) } else { None };
    let worker = worker.map(str::parse).transpose().map_err(|_| Malformed("a worker's id"))?;
    let idempotency = if set(IDEMPOTENCY) { Some(idempotency(&mut at)?) } else { None };
    let mut row = JobRow {
        state,
        low_priority: set(LOW_PRIORITY),
        never_taken: set(NEVER_TAKEN),
        ttl_pinned: set(TTL_PINNED),
        webhook: set(WEBHOOK),
        webhook_pending: set(WEBHOOK_PENDING),
        retries,
        redeliveries,
        attempt,
        order,
        enqueued_at,
        started_at,
        finished_at,
        delete_at,
        ttl_ms,
        execution_timeout_ms,
        input_bytes,
        worker,
        idempotency,
        ..JobRow::queued(key, id, created_at)
    };
    if set(MORE) {
        job_fields::decode(at.bytes("fields")?, &mut row)?;
    }
    at.end()?;
    Ok(row)
}

fn distance(at: &mut Decoder<'_>, from: Millis) -> Result<Millis, Malformed> {
    Ok(Millis(from.0.wrapping_add(at.signed("a time")? as u64)))
}

fn idempotency(at: &mut Decoder<'_>) -> Result<Box<Idempotency>, Malformed> {
    let key = at.text("idempotency key")?.into();
    Ok(Box::new(Idempotency { key, fingerprint: at.array("fingerprint")? }))
}
