//! `jobs/{job}`: everything that is known of a job beside its input and output.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{DeliveryFilter, JobSnapshot};
use longshore_model::{AttemptEnd, EndedAttempt, JobRow, JobState, Millis, limits};
use serde_json::{Map, Value, json};

use super::job_worker::JobWorker;
use super::openapi::{job_id, states};
use super::webhooks;
use crate::HttpState;
use crate::gate::call::Call;
use crate::openapi::schema::{array_of, count, object, reference, text, time};
use crate::wire::api_error::ApiError;
use crate::wire::rfc3339::rfc3339;

/// `GET /jobs/{job}`.
pub(super) async fn life(call: Call) -> Result<Response, ApiError> {
    let (id, jobs) = (call.job()?, call.endpoint.jobs());
    let job = jobs.summary(id).await?;
    let row = &job.row;
    let position = if row.state == JobState::InQueue { jobs.position(id).await? } else { None };
    let ended = jobs.ended_attempts(row).await?;
    let mut view = record(&job);
    view.extend(times(row));
    view.extend(submit(&call.state, row));
    view.extend(trace(&call.state, row));
    view.insert("position".to_owned(), json!(position));
    let stream = jobs.stream_size(id).await?;
    view.insert("chunks".to_owned(), json!(stream.chunks));
    view.insert("chunkBytes".to_owned(), json!(stream.bytes));
    let mut worker = JobWorker::running(&call, row);
    if let (None, Some(id)) = (&worker, &row.worker) {
        let (files, endpoint) = (Arc::clone(call.state.files()), call.endpoint.id());
        worker = JobWorker::ended(id.clone(), move || files.ended_workers(&endpoint)).await?;
    }
    let worker = worker.as_ref();
    view.insert("version".to_owned(), json!(version(&call, row, worker)));
    view.insert("coldStart".to_owned(), worker.map_or(Value::Null, |worker| cold_start(row, worker)));
    // A row of an older version has no GPU.
    let of_worker = worker.and_then(|worker| worker.placement.gpus.first()).map(|gpu| gpu.type_id.as_str());
    let gpu = row.gpu.as_deref().or(of_worker);
    view.insert("attempts".to_owned(), attempts(row, ended, gpu).iter().map(attempt).collect());
    let calls = if row.webhook || call.endpoint.record().webhook.is_some() {
        jobs.deliveries(DeliveryFilter { job: Some(id), ..DeliveryFilter::default() }).await?
    } else {
        Vec::new()
    };
    let receiver = match calls.first() {
        Some(call) => Some(call.receiver.clone()),
        None => jobs.webhook_receiver(row).await,
    };
    view.insert("webhookReceiver".to_owned(), json!(receiver));
    view.insert("webhooks".to_owned(), calls.iter().map(webhooks::view).collect());
    Ok(axum::Json(Value::Object(view)).into_response())
}

/// The version of the endpoint that the job's worker was started for. Without the worker, the one that the endpoint had when the
/// job was started, or else submitted; `None` if that is no longer known.
fn version(call: &Call, row: &JobRow, worker: Option<&JobWorker>) -> Option<u32> {
    if let Some(version) = worker.filter(|_| row.ran() && !row.never_taken).and_then(|worker| worker.version)
    {
        return Some(version);
    }
    let at = if row.ran() && !row.never_taken { row.started_at } else { row.created_at };
    let versions = call.state.engine().catalog().versions(&call.endpoint.record());
    let began = versions.iter().filter_map(|version| Some((version.entries.first()?.at, version.version)));
    began.filter(|(began, _)| *began <= at).max().map(|(_, version)| version)
}

/// The start of the worker that the job waited for; null if the worker was there before the job.
fn cold_start(row: &JobRow, worker: &JobWorker) -> Value {
    let requested_at = worker.placement.started_at;
    let waited = row.ran() && !row.never_taken && row.was_waiting_at(requested_at);
    match worker.ready_at.filter(|_| waited) {
        Some(ready_at) => json!({
            "worker": row.worker,
            "requestedAt": rfc3339(requested_at),
            // The fleet learns of the first take after it: a worker that started the job was ready.
            "readyAt": rfc3339(ready_at.min(row.started_at)),
        }),
        None => Value::Null,
    }
}

/// The members of `/status`, with the size of the output in its place.
fn record(job: &JobSnapshot) -> Map<String, Value> {
    let row = &job.row;
    let mut view = Map::new();
    let mut put = |name: &str, value: Value| drop(view.insert(name.to_owned(), value));
    put("id", json!(row.id));
    put("status", json!(row.state));
    if row.state != JobState::InQueue && !row.never_taken {
        put("delayTime", json!(row.delay_ms()));
        put("executionTime", json!(row.execution_ms(job.now)));
    }
    if let Some(worker) = row.worker.as_ref().filter(|_| !row.never_taken) {
        put("workerId", json!(worker));
    }
    if let Some(error) = &job.error {
        put("error", json!(error));
    }
    put("retries", json!(row.retries));
    put("inputBytes", json!(row.input_bytes));
    put("outputBytes", json!(job.output_bytes));
    view
}

fn times(row: &JobRow) -> Map<String, Value> {
    let known = |at: Millis| (at != Millis(0)).then(|| rfc3339(at));
    let is_over = row.state.is_terminal();
    let progress = row.progress.iter().flatten().map(|ms| rfc3339(row.started_at + u64::from(*ms)));
    let view = json!({
        "progressAt": progress.collect::<Vec<_>>(),
        "createdAt": rfc3339(row.created_at),
        "enqueuedAt": rfc3339(row.enqueued_at),
        "startedAt": if row.never_taken { None } else { known(row.started_at) },
        "firstChunkAt": known(row.first_chunk_at),
        "completedAt": if is_over { known(row.finished_at) } else { None },
        "ttlAt": if is_over { None } else { known(row.delete_at) },
        "expiresAt": if is_over { known(row.delete_at) } else { None },
    });
    members(view)
}

/// Who submitted the job, and how.
fn submit(state: &HttpState, row: &JobRow) -> Map<String, Value> {
    let keys = state.engine().keys();
    let key = row.submitter.key.map(|key| {
        let id = key.to_string();
        let name = keys.get(&id).map(|key| key.name.clone());
        json!({ "id": id, "name": name })
    });
    let view = json!({
        "owner": keys.owner_name(row.submitter.owner),
        "key": key,
        "mode": if row.id.is_sync() { "sync" } else { "async" },
        "policy": {
            "executionTimeout": row.execution_timeout_ms,
            "ttl": row.ttl_ms,
            "lowPriority": row.low_priority,
        },
    });
    members(view)
}

/// Where the job is in its trace, and the address at which the trace is shown.
fn trace(state: &HttpState, row: &JobRow) -> Map<String, Value> {
    let context = state.engine().trace_of(row);
    let link = &state.facts().trace_link;
    let url = context.filter(|_| !link.is_empty());
    let url = url.map(|context| link.replace(TRACE_ID, &const_hex::encode(context.trace)));
    members(json!({ "traceparent": context.map(|context| context.to_string()), "traceUrl": url }))
}

/// An attempt of a job, which may be running.
struct Attempted {
    attempt: EndedAttempt,
    is_running: bool,
}

/// The last attempts, oldest first: those that are stored, and the present or last one, which follows from the job's row.
fn attempts(row: &JobRow, ended: Vec<EndedAttempt>, gpu: Option<&str>) -> Vec<Attempted> {
    let mut attempts: Vec<_> =
        ended.into_iter().map(|attempt| Attempted { attempt, is_running: false }).collect();
    let last = attempts.last().map(|last| &last.attempt).filter(|last| last.n >= row.attempt);
    // A result that arrived after its attempt was given up ends the attempt after all.
    let is_told = last.is_some() && row.state != JobState::Completed;
    if row.state != JobState::InQueue && !row.never_taken && row.ran() && !is_told {
        let taken_at = last.map_or(row.started_at, |last| last.taken_at);
        let present = present_attempt(row, taken_at, gpu);
        attempts.retain(|one| one.attempt.n < present.attempt.n);
        attempts.push(present);
    }
    attempts.split_off(attempts.len().saturating_sub(limits::ATTEMPTS_MAX as usize))
}

fn present_attempt(row: &JobRow, taken_at: Millis, gpu: Option<&str>) -> Attempted {
    let end = match row.state {
        JobState::Failed => AttemptEnd::Failed,
        JobState::TimedOut => AttemptEnd::TimedOut,
        JobState::Cancelled => AttemptEnd::Cancelled,
        JobState::Completed | JobState::InQueue | JobState::InProgress => AttemptEnd::Completed,
    };
    let attempt = EndedAttempt {
        n: row.attempt,
        worker: row.worker.clone(),
        gpu: gpu.map(Into::into),
        taken_at,
        ended_at: row.finished_at,
        end,
        reason: Box::default(),
    };
    Attempted { attempt, is_running: !row.state.is_terminal() }
}

fn attempt(Attempted { attempt, is_running }: &Attempted) -> Value {
    let over = |value: String| Some(value).filter(|value| !is_running && !value.is_empty());
    json!({
        "n": attempt.n.0,
        "worker": attempt.worker,
        "gpu": attempt.gpu,
        "takenAt": rfc3339(attempt.taken_at),
        "endedAt": over(rfc3339(attempt.ended_at)),
        "end": over(attempt.end.as_str().to_owned()),
        "reason": over(attempt.reason.to_string()),
    })
}

fn members(view: Value) -> Map<String, Value> {
    match view {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The schema of the response.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let nullable = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let later = || nullable(time());
    let ends = AttemptEnd::ALL.map(AttemptEnd::as_str);
    let attempt = [
        ("n", count()),
        ("worker", nullable(text())),
        ("gpu", nullable(text())),
        ("takenAt", time()),
        ("endedAt", later()),
        ("end", nullable(json!({ "type": "string", "enum": ends }))),
        ("reason", nullable(text())),
    ];
    let policy =
        [("executionTimeout", count()), ("ttl", count()), ("lowPriority", json!({ "type": "boolean" }))];
    let key = object(&[("id", text()), ("name", nullable(text()))], &["id", "name"]);
    let cold = [("worker", text()), ("requestedAt", time()), ("readyAt", time())];
    let cold = object(&cold, &["worker", "requestedAt", "readyAt"]);
    let life = [
        ("id", job_id()),
        ("status", states()),
        ("delayTime", count()),
        ("executionTime", count()),
        ("workerId", text()),
        ("error", text()),
        ("retries", count()),
        ("inputBytes", count()),
        ("outputBytes", nullable(count())),
        ("createdAt", time()),
        ("enqueuedAt", time()),
        ("startedAt", later()),
        ("firstChunkAt", later()),
        ("progressAt", array_of(&time())),
        ("completedAt", later()),
        ("ttlAt", later()),
        ("expiresAt", later()),
        ("owner", text()),
        ("key", nullable(key)),
        ("mode", json!({ "type": "string", "enum": ["sync", "async"] })),
        ("policy", object(&policy, &["executionTimeout", "ttl", "lowPriority"])),
        ("traceparent", nullable(text())),
        ("traceUrl", nullable(text())),
        ("position", nullable(count())),
        ("version", nullable(count())),
        ("coldStart", nullable(cold)),
        ("chunks", count()),
        ("chunkBytes", count()),
        (
            "attempts",
            array_of(&object(&attempt, &["n", "worker", "gpu", "takenAt", "endedAt", "end", "reason"])),
        ),
        ("webhookReceiver", nullable(text())),
        ("webhooks", array_of(&reference("Webhook"))),
    ];
    let required: Vec<_> =
        life.iter().map(|(name, _)| *name).filter(|name| !OPTIONAL.contains(name)).collect();
    let payload = json!({ "description": "the JSON that a client or a worker sent" });
    vec![("JobLife", object(&life, &required)), ("Payload", payload)]
}

/// What stands for the id of a trace in the setting `trace_link`.
const TRACE_ID: &str = "{trace_id}";

/// Members that are absent while they are unknown, as in `/status`.
const OPTIONAL: [&str; 4] = ["delayTime", "executionTime", "workerId", "error"];
