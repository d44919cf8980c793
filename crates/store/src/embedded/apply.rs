//! The changes of a batch as statements, each by primary key.

use std::iter::Peekable;

use longshore_model::{Counters, Endpoint, EndpointNo, JobKey};
use rusqlite::{Connection, Params, params};
use serde::Serialize;

use super::column::payload_columns;
use super::job_row;
use crate::{OutcomeRow, Payload, Write};

/// Carries out the changes inside the present transaction.
pub(super) fn apply<'a>(db: &Connection, writes: impl Iterator<Item = &'a Write>) -> rusqlite::Result<()> {
    let mut writes = writes.peekable();
    while let Some(write) = writes.next() {
        match write {
            Write::DeleteJob(first) => delete_jobs(db, *first, last_of_run(*first, &mut writes))?,
            other => apply_one(db, other)?,
        }
    }
    Ok(())
}

/// The last of the jobs with consecutive numbers that are removed one after the other: expiry and purge remove
/// them by the hundred, and a range takes six statements whatever its length.
fn last_of_run<'a>(first: JobKey, writes: &mut Peekable<impl Iterator<Item = &'a Write>>) -> JobKey {
    let mut last = first;
    while let Some(Write::DeleteJob(next)) = writes.peek()
        && last.to_row().checked_add(1) == Some(next.to_row())
    {
        last = *next;
        writes.next();
    }
    last
}

fn apply_one(db: &Connection, write: &Write) -> rusqlite::Result<()> {
    match write {
        Write::PutJob(row) => job_row::put(db, row),
        Write::DeleteJob(job) => delete_jobs(db, *job, *job),
        Write::PutInput(job, input) => put_input(db, *job, input),
        Write::PutOutcome(job, outcome) => put_outcome(db, *job, outcome),
        Write::ClearOutcome(job) => run(db, "DELETE FROM outcome WHERE job = ?", [job.to_row()]),
        Write::AppendChunk(job, chunk) => run(
            db,
            "INSERT OR REPLACE INTO chunk (job, no, bytes) VALUES (?, ?, ?)",
            params![job.to_row(), chunk.offset as i64, &chunk.bytes[..]],
        ),
        Write::DropChunks(job) => drop_chunks(db, *job),
        Write::PutStream(job, stream) => run(
            db,
            "INSERT OR REPLACE INTO stream (job, next, drained) VALUES (?, ?, ?)",
            params![job.to_row(), stream.next as i64, stream.drained as i64],
        ),
        Write::DeleteStream(job) => {
            run(db, "DELETE FROM stream WHERE job = ?", [job.to_row()])?;
            drop_chunks(db, *job)
        }
        Write::PutHook(hook) => run(
            db,
            "INSERT OR REPLACE INTO hook (job, attempts, due_at) VALUES (?, ?, ?)",
            params![hook.job.to_row(), hook.attempts, hook.due_at.0 as i64],
        ),
        Write::DeleteHook(job) => run(db, "DELETE FROM hook WHERE job = ?", [job.to_row()]),
        Write::PutCounters(endpoint, counters) => put_counters(db, *endpoint, counters),
        Write::PutEndpoint(endpoint) => put_endpoint(db, endpoint),
        Write::DeleteEndpoint(endpoint) => {
            run(db, "DELETE FROM endpoint WHERE no = ?", [endpoint.0])?;
            run(db, "DELETE FROM counters WHERE endpoint_no = ?", [endpoint.0])
        }
        Write::PutTemplate(template) => run(
            db,
            "INSERT INTO template (id, record) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            params![template.id.as_str(), json(&**template)?],
        ),
        Write::DeleteTemplate(id) => run(db, "DELETE FROM template WHERE id = ?", [id.as_str()]),
        Write::PutKey(key) => run(
            db,
            "INSERT INTO api_key (id, record) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET record = excluded.record",
            params![key.id, json(&**key)?],
        ),
        Write::DeleteKey(id) => run(db, "DELETE FROM api_key WHERE id = ?", [id]),
        Write::PutSetting(name, value) => {
            run(db, "INSERT OR REPLACE INTO setting (name, value) VALUES (?, ?)", params![name, &value[..]])
        }
        Write::PutRecord(kind, id, json) => run(
            db,
            "INSERT INTO record (kind, id, json) VALUES (?, ?, ?)
             ON CONFLICT (kind, id) DO UPDATE SET json = excluded.json",
            params![kind.number(), id, &json[..]],
        ),
        Write::DeleteRecord(kind, id) => {
            run(db, "DELETE FROM record WHERE kind = ? AND id = ?", params![kind.number(), id])
        }
    }
}

fn run(db: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute(params).map(drop)
}

fn json(record: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(record).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn delete_jobs(db: &Connection, first: JobKey, last: JobKey) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM job WHERE key BETWEEN ? AND ?",
        "DELETE FROM input WHERE job BETWEEN ? AND ?",
        "DELETE FROM outcome WHERE job BETWEEN ? AND ?",
        "DELETE FROM stream WHERE job BETWEEN ? AND ?",
        "DELETE FROM hook WHERE job BETWEEN ? AND ?",
        "DELETE FROM chunk WHERE job BETWEEN ? AND ?",
    ] {
        run(db, sql, [first.to_row(), last.to_row()])?;
    }
    Ok(())
}

fn drop_chunks(db: &Connection, job: JobKey) -> rusqlite::Result<()> {
    run(db, "DELETE FROM chunk WHERE job = ?", [job.to_row()])
}

fn put_input(db: &Connection, job: JobKey, input: &Payload) -> rusqlite::Result<()> {
    let (body, blob, blob_bytes) = payload_columns(Some(input));
    run(
        db,
        "INSERT OR REPLACE INTO input (job, body, body_blob, body_blob_bytes) VALUES (?, ?, ?, ?)",
        params![job.to_row(), body, blob, blob_bytes],
    )
}

fn put_outcome(db: &Connection, job: JobKey, outcome: &OutcomeRow) -> rusqlite::Result<()> {
    let (output, blob, blob_bytes) = payload_columns(outcome.output.as_ref());
    run(
        db,
        "INSERT OR REPLACE INTO outcome (job, output, output_blob, output_blob_bytes, error) VALUES (?, ?, ?, ?, ?)",
        params![job.to_row(), output, blob, blob_bytes, outcome.error.as_deref()],
    )
}

fn put_counters(db: &Connection, endpoint: EndpointNo, counters: &Counters) -> rusqlite::Result<()> {
    run(
        db,
        "INSERT OR REPLACE INTO counters (endpoint_no, completed, failed, retried, cancelled, reserved_seq, purged_until)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            endpoint.0,
            counters.completed as i64,
            counters.failed as i64,
            counters.retried as i64,
            counters.cancelled as i64,
            counters.reserved_seq as i64,
            counters.purged_until.0 as i64,
        ],
    )
}

fn put_endpoint(db: &Connection, endpoint: &Endpoint) -> rusqlite::Result<()> {
    run(
        db,
        "INSERT OR REPLACE INTO endpoint (no, record) VALUES (?, ?)",
        params![endpoint.no.0, json(endpoint)?],
    )?;
    run(db, "UPDATE installation SET last_endpoint_no = ?1 WHERE last_endpoint_no < ?1", [endpoint.no.0])
}
