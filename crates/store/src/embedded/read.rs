//! What the store answers, as queries. Each runs on one connection of the read pool and sees every commit that was
//! acknowledged before it began.

use std::collections::BTreeMap;

use bytes::Bytes;
use longshore_model::{Counters, EndpointNo, JobKey, JobRow, Millis, RecordKind};
use rusqlite::{Connection, Row, params};
use serde::de::DeserializeOwned;

use super::column::{self, Column};
use super::error::{corrupt, from_sqlite};
use super::job_row;
use crate::{Catalog, ChunkRow, HookRow, OutcomeRow, Payload, RecordRow, StoreError, StreamRow};

/// Everything that is not a job.
pub(super) fn catalog(db: &Connection) -> Result<Catalog, StoreError> {
    // One transaction: the lists fit each other.
    let snapshot = db.unchecked_transaction().map_err(|error| from_sqlite(&error))?;
    let last = column::first(&snapshot, "SELECT only_row, last_endpoint_no FROM installation", [], |row| {
        Column { table: "installation", key: 1, row }.number(1)
    })?;
    Ok(Catalog {
        endpoints: records(&snapshot, "endpoint", "SELECT no, record FROM endpoint ORDER BY no")?,
        templates: records(&snapshot, "template", "SELECT rowid, record FROM template ORDER BY rowid")?,
        keys: records(&snapshot, "api_key", "SELECT rowid, record FROM api_key ORDER BY rowid")?,
        records: small_records(&snapshot)?,
        settings: settings(&snapshot)?,
        last_endpoint_no: last.ok_or_else(|| corrupt("installation", 1, "the row is missing"))?,
    })
}

fn records<T: DeserializeOwned>(
    db: &Connection,
    table: &'static str,
    sql: &str,
) -> Result<Vec<T>, StoreError> {
    column::collect(db, sql, [], |row| {
        let at = at(table, row)?;
        // Where the text is wrong, not what it says: records hold secrets.
        serde_json::from_str(at.text(1)?).map_err(|error| {
            let what = format_args!("the record does not parse at column {}", error.column()).to_string();
            corrupt(table, at.key, what)
        })
    })
}

fn small_records(db: &Connection) -> Result<Vec<RecordRow>, StoreError> {
    column::collect(db, "SELECT rowid, kind, id, json FROM record ORDER BY rowid", [], |row| {
        let at = at("record", row)?;
        Ok(RecordRow {
            kind: RecordKind::from_number(at.number(1)?).ok_or_else(|| at.corrupt(1, "is no kind"))?,
            id: at.text(2)?.to_owned(),
            json: Bytes::copy_from_slice(at.bytes(3)?),
        })
    })
}

fn settings(db: &Connection) -> Result<BTreeMap<String, Bytes>, StoreError> {
    let rows = column::collect(db, "SELECT rowid, name, value FROM setting", [], |row| {
        let at = at("setting", row)?;
        Ok((at.text(1)?.to_owned(), Bytes::copy_from_slice(at.bytes(2)?)))
    })?;
    Ok(rows.into_iter().collect())
}

/// An endpoint's counters.
pub(super) fn counters(db: &Connection, endpoint: EndpointNo) -> Result<Counters, StoreError> {
    let sql = "SELECT endpoint_no, completed, failed, retried, cancelled, reserved_seq, purged_until
               FROM counters WHERE endpoint_no = ?";
    let counters = column::first(db, sql, [endpoint.0], |row| {
        let at = at("counters", row)?;
        Ok(Counters {
            completed: at.unsigned(1)?,
            failed: at.unsigned(2)?,
            retried: at.unsigned(3)?,
            cancelled: at.unsigned(4)?,
            reserved_seq: at.unsigned(5)?,
            purged_until: Millis(at.unsigned(6)?),
        })
    })?;
    Ok(counters.unwrap_or_default())
}

/// A page of an endpoint's jobs.
pub(super) fn jobs(
    db: &Connection,
    endpoint: EndpointNo,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<JobRow>, StoreError> {
    if after_seq >= JobKey::SEQ_MAX {
        return Ok(Vec::new());
    }
    let after = JobKey { endpoint, seq: after_seq }.to_row();
    job_row::range(db, after, last_key(endpoint), i64::try_from(limit).unwrap_or(i64::MAX))
}

/// The webhook calls that an endpoint owes.
pub(super) fn hooks(db: &Connection, endpoint: EndpointNo) -> Result<Vec<HookRow>, StoreError> {
    let first = JobKey { endpoint, seq: 0 }.to_row();
    let sql = "SELECT job, attempts, due_at FROM hook WHERE job BETWEEN ? AND ? ORDER BY job";
    column::collect(db, sql, [first, last_key(endpoint)], |row| {
        let at = at("hook", row)?;
        Ok(HookRow {
            job: JobKey::from_row(at.key),
            attempts: at.number(1)?,
            due_at: Millis(at.unsigned(2)?),
        })
    })
}

/// A job's input.
pub(super) fn input(db: &Connection, job: JobKey) -> Result<Option<Payload>, StoreError> {
    let sql = "SELECT job, body, body_blob, body_blob_bytes FROM input WHERE job = ?";
    let input = column::first(db, sql, [job.to_row()], |row| {
        let at = at("input", row)?;
        at.payload(1)?.ok_or_else(|| at.corrupt(1, "is missing and no file is named"))
    })?;
    Ok(input)
}

/// A job's output and error.
pub(super) fn outcome(db: &Connection, job: JobKey) -> Result<Option<OutcomeRow>, StoreError> {
    let sql = "SELECT job, output, output_blob, output_blob_bytes, error FROM outcome WHERE job = ?";
    column::first(db, sql, [job.to_row()], |row| {
        let at = at("outcome", row)?;
        Ok(OutcomeRow { output: at.payload(1)?, error: at.optional_text(4)?.map(Into::into) })
    })
}

/// Where a job's stream stands.
pub(super) fn stream(db: &Connection, job: JobKey) -> Result<Option<StreamRow>, StoreError> {
    column::first(db, "SELECT job, next, drained FROM stream WHERE job = ?", [job.to_row()], |row| {
        let at = at("stream", row)?;
        Ok(StreamRow { next: at.number(1)?, drained: at.number(2)? })
    })
}

/// A page of a job's chunks.
pub(super) fn chunks(
    db: &Connection,
    job: JobKey,
    offset: u64,
    bytes_max: usize,
) -> Result<Vec<ChunkRow>, StoreError> {
    // A poller may ask from any offset; beyond the signed range there is nothing.
    let Ok(from) = i64::try_from(offset) else { return Ok(Vec::new()) };
    let sqlite = |error| from_sqlite(&error);
    let mut statement = db
        .prepare_cached("SELECT job, no, bytes FROM chunk WHERE job = ? AND no >= ? ORDER BY no")
        .map_err(sqlite)?;
    let mut rows = statement.query(params![job.to_row(), from]).map_err(sqlite)?;
    let (mut chunks, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().map_err(sqlite)? {
        let at = at("chunk", row)?;
        let chunk = ChunkRow { offset: at.unsigned(1)?, bytes: Bytes::copy_from_slice(at.bytes(2)?) };
        bytes += chunk.bytes.len();
        chunks.push(chunk);
        if bytes >= bytes_max {
            break;
        }
    }
    Ok(chunks)
}

fn last_key(endpoint: EndpointNo) -> i64 {
    JobKey { endpoint, seq: JobKey::SEQ_MAX }.to_row()
}

/// The columns of a row whose first is its key.
fn at<'row, 'statement>(
    table: &'static str,
    row: &'row Row<'statement>,
) -> Result<Column<'row, 'statement>, StoreError> {
    let key = row.get(0).map_err(|error| corrupt(table, "?", error))?;
    Ok(Column { table, key, row })
}
