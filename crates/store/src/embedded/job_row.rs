//! A job's row: its columns in one order, both ways.

use longshore_model::{Attempt, Idempotency, JobId, JobKey, JobRow, JobState, Millis};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use super::column::{self, Column};
use super::error::from_sqlite;
use crate::StoreError;

/// Inserts or replaces a job.
pub(super) fn put(db: &Connection, row: &JobRow) -> rusqlite::Result<()> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO job (key, id, sync, state, low_priority, fresh, pinned, webhook, webhook_owed,
         retries, redeliveries, attempt, queue_order, created_at, enqueued_at, started_at, finished_at, delete_at,
         ttl_ms, execution_timeout_ms, input_bytes, worker, idempotency_key, fingerprint)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        row.key.to_row(),
        row.id.raw(),
        row.id.is_sync(),
        row.state as u8,
        row.low_priority,
        row.fresh,
        row.pinned,
        row.webhook,
        row.webhook_owed,
        row.retries,
        row.redeliveries,
        row.attempt.0,
        row.order,
        row.created_at.0 as i64,
        row.enqueued_at.0 as i64,
        row.started_at.0 as i64,
        row.finished_at.0 as i64,
        row.delete_at.0 as i64,
        row.ttl_ms,
        row.execution_timeout_ms,
        row.input_bytes,
        row.worker.as_ref().map(longshore_model::WorkerId::as_str),
        row.idempotency.as_ref().map(|idempotency| &*idempotency.key),
        row.idempotency.as_ref().map(|idempotency| idempotency.fingerprint),
    ])?;
    Ok(())
}

/// An endpoint's jobs between two row keys, the first not included.
pub(super) fn range(db: &Connection, after: i64, last: i64, limit: i64) -> Result<Vec<JobRow>, StoreError> {
    column::collect(
        db,
        "SELECT key, id, sync, state, low_priority, fresh, pinned, webhook, webhook_owed,
         retries, redeliveries, attempt, queue_order, created_at, enqueued_at, started_at, finished_at, delete_at,
         ttl_ms, execution_timeout_ms, input_bytes, worker, idempotency_key, fingerprint
         FROM job WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
        params![after, last, limit],
        decode,
    )
}

fn decode(row: &Row<'_>) -> Result<JobRow, StoreError> {
    // The column is the table's rowid: it cannot be anything but an integer.
    let key = row.get(0).map_err(|error| from_sqlite(&error))?;
    let at = Column { table: "job", key, row };
    let raw: [u8; 16] = at.bytes(1)?.try_into().map_err(|_| at.corrupt(1, "is not 16 bytes long"))?;
    Ok(JobRow {
        key: JobKey::from_row(key),
        id: JobId::from_parts(raw, at.flag(2)?),
        state: JobState::from_number(at.number(3)?).ok_or_else(|| at.corrupt(3, "is no state"))?,
        low_priority: at.flag(4)?,
        fresh: at.flag(5)?,
        pinned: at.flag(6)?,
        webhook: at.flag(7)?,
        webhook_owed: at.flag(8)?,
        retries: at.number(9)?,
        redeliveries: at.number(10)?,
        attempt: Attempt(at.number(11)?),
        order: at.integer(12)?,
        created_at: Millis(at.unsigned(13)?),
        enqueued_at: Millis(at.unsigned(14)?),
        started_at: Millis(at.unsigned(15)?),
        finished_at: Millis(at.unsigned(16)?),
        delete_at: Millis(at.unsigned(17)?),
        ttl_ms: at.number(18)?,
        execution_timeout_ms: at.number(19)?,
        input_bytes: at.number(20)?,
        worker: match at.optional_text(21)? {
            Some(text) => Some(text.parse().map_err(|_| at.corrupt(21, "is no worker id"))?),
            None => None,
        },
        idempotency: idempotency(&at)?,
    })
}

fn idempotency(at: &Column<'_, '_>) -> Result<Option<Box<Idempotency>>, StoreError> {
    let Some(key) = at.optional_text(22)? else { return Ok(None) };
    let ValueRef::Blob(fingerprint) = at.value(23)? else {
        return Err(at.corrupt(23, "is missing beside an idempotency key"));
    };
    let fingerprint = fingerprint.try_into().map_err(|_| at.corrupt(23, "is not 16 bytes long"))?;
    Ok(Some(Box::new(Idempotency { key: key.into(), fingerprint })))
}
