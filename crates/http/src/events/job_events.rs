//! The events of jobs.

use longshore_engine::{ChangedJob, Engine, JobChanges, JobCounts};
use longshore_model::{Endpoint, JobRow, JobState, Millis};
use serde_json::{Map, Value, json};

use crate::wire::rfc3339::rfc3339;

/// The data of a `jobs` event.
pub(crate) fn jobs(engine: &Engine, endpoint: &Endpoint, changes: &JobChanges) -> String {
    let jobs: Vec<_> = changes.changed.iter().map(|job| changed_job(engine, job)).collect();
    json!({
        "endpoint": endpoint.id,
        "slug": endpoint.slug,
        "counts": counts(&changes.counts),
        "states": states(&changes.counts),
        "changed": jobs,
        "more": changes.more,
    })
    .to_string()
}

/// The numbers of an endpoint's jobs.
fn counts(counts: &JobCounts) -> Value {
    json!({
        "queued": counts.queued,
        "running": counts.running,
        "completed": counts.completed,
        "failed": counts.failed,
        "cancelled": counts.cancelled,
        "retried": counts.retried,
    })
}

/// The jobs that are there, by state, as `/requests` counts them.
fn states(counts: &JobCounts) -> Value {
    JobState::ALL.iter().map(|state| (state.as_str().to_owned(), json!(counts.states.of(*state)))).collect()
}

fn changed_job(engine: &Engine, job: &ChangedJob) -> Value {
    let mut view = Map::new();
    view.insert("id".to_owned(), json!(job.id));
    view.insert("at".to_owned(), json!(job.at.0));
    match &job.row {
        Some(row) => put_row(engine, row, job.at, &mut view),
        None => drop(view.insert("deleted".to_owned(), json!(true))),
    }
    Value::Object(view)
}

/// Adds what `/requests` shows of a job beside its output and error. What is unknown is left out.
fn put_row(engine: &Engine, row: &JobRow, at: Millis, view: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| drop(view.insert(name.to_owned(), value));
    put("status", json!(row.state));
    put("createdAt", json!(rfc3339(row.created_at)));
    if row.ran() && !row.never_taken {
        put("startedAt", json!(rfc3339(row.started_at)));
        put("delayTime", json!(row.delay_ms()));
        put("executionTime", json!(row.execution_ms(at)));
    }
    if let Some(worker) = row.worker.as_ref().filter(|_| !row.never_taken) {
        put("worker", json!(worker));
    }
    if row.state.is_terminal() {
        put("completedAt", json!(rfc3339(row.finished_at)));
    }
    if row.retries > 0 {
        put("retries", json!(row.retries));
    }
    put("owner", json!(engine.keys().owner_name(row.submitter.owner)));
    if let Some(key) = row.submitter.key {
        put("key", json!(key.to_string()));
    }
}
