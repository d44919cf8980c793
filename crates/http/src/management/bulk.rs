//! `/v2/{endpoint}/bulk`: cancels, retries or deletes many jobs in a task that goes on by itself.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use longshore_engine::{BULK_IDS_MAX, BulkAction, BulkSelection, BulkState, BulkTask, JobConditions};
use longshore_history::LimitedOperation;
use longshore_model::Permission::{ReadJobs, WriteJobs};
use longshore_model::limits::MANAGEMENT_BODY_BYTES_MAX;
use longshore_model::{JobId, JobState};
use serde_json::{Map, Value, json};

use super::fields::{Field, FieldKind, Verb, read_members};
use super::schemas::sent;
use crate::audit::note_fields;
use crate::gate::call::{Call, Gate};
use crate::jobs::gated;
use crate::jobs::openapi::job_id;
use crate::jobs::requests::{conditions, of_version, search};
use crate::openapi::schema::{count, object, text, time, with_example};
use crate::openapi::{Group, Operation};
use crate::wire::api_error::ApiError;
use crate::wire::body;
use crate::wire::query::Query;
use crate::wire::rfc3339::rfc3339;

/// The longest text of a condition, in characters.
const TEXT: FieldKind = FieldKind::Text { chars_max: 300 };
const ANY_MS: FieldKind = FieldKind::Integer { min: 0, max: u64::MAX };

/// The conditions of a filter: the parameters of `/requests` by their names.
const FILTER_FIELDS: &[Field] = &[
    Field::new("status", TEXT, "only jobs in these states, between commas"),
    Field::new("since", FieldKind::Time, "only jobs submitted then or later"),
    Field::new("until", FieldKind::Time, "only jobs submitted earlier"),
    Field::new("worker", TEXT, "only jobs whose present or last worker has this id"),
    Field::new("key", TEXT, "only jobs that the API key with this id submitted"),
    Field::new("id", TEXT, "only jobs whose id begins or ends with this text"),
    Field::new("minDelayMs", ANY_MS, "only jobs that waited for this time at least"),
    Field::new("minExecutionMs", ANY_MS, "only jobs that ran for this time at least"),
    Field::new("retried", FieldKind::Flag, "only jobs that were retried automatically"),
    Field::new(
        "version",
        FieldKind::Integer { min: 1, max: u32::MAX as u64 },
        "only jobs that started while the endpoint had it",
    ),
    Field::new(
        "input",
        FieldKind::Members,
        "only jobs with these members of their input, by path: `{\"customer.id\": 17}`",
    ),
    Field::new("q", TEXT, "only jobs with this text in their id, input, output or error, in any case"),
    Field::new("error", TEXT, "only jobs with this text in their error, in any case"),
    Field::new(
        "webhook",
        FieldKind::Word(&["DELIVERED", "PENDING", "FAILED"]),
        "only jobs with a webhook call that stands so",
    ),
];

/// The members of a request.
pub(crate) const BULK_FIELDS: &[Field] = &[
    Field::new("do", FieldKind::Word(&["cancel", "retry", "delete"]), "what is done with each job"),
    Field::new("filter", FieldKind::Object(FILTER_FIELDS), "the jobs, by conditions; `{}` for all"),
    Field::new("ids", FieldKind::Texts, "the jobs, by their ids, at most 1000; instead of `filter`"),
    Field::new("dryRun", FieldKind::Flag, "counts the jobs and changes none").default("false"),
];

/// What a bulk task is.
const ABOUT: &str = "The task goes on after the answer, also after a restart of the server, and changes a job once. \
    `cancel` is for queued and running jobs, `retry` for failed and timed-out ones, `delete` for ended ones; others that match \
    are left out. Jobs that are submitted or end after the request are left out, too. `matches` is the number of jobs when the \
    task was created, as far as they could be counted in 2 s: `counted` is false if there may be more. `failed` jobs ended by \
    themselves meanwhile, are in another state than the task is for, or could not be read. A task is kept for a day after its end. At most 4 tasks of an endpoint run at a \
    time. With `dryRun` there is no task: `id` is null.";

/// The operations on bulk tasks.
pub(super) fn group() -> Group {
    let read = Gate::limited(ReadJobs, LimitedOperation::Status);
    let change = Gate::limited(WriteJobs, LimitedOperation::Cancel);
    let operations = vec![
        Operation::post("CreateBulkTask", "/v2/{endpoint}/bulk", gated(change, create))
            .summary("cancels, retries or deletes many jobs")
            .about(ABOUT)
            .takes("BulkRequest")
            .accepts_as("BulkTask")
            .rated(),
        Operation::get("ListBulkTasks", "/v2/{endpoint}/bulk", gated(read, list))
            .summary("the bulk tasks of the endpoint, newest first")
            .gives_many("BulkTask")
            .rated(),
        Operation::get("GetBulkTask", "/v2/{endpoint}/bulk/{task}", gated(read, get))
            .summary("how far a bulk task is")
            .gives("BulkTask")
            .rated(),
        Operation::delete("StopBulkTask", "/v2/{endpoint}/bulk/{task}", gated(change, stop))
            .summary("stops a bulk task that runs, and forgets one that has ended")
            .gives("BulkTask")
            .rated(),
    ];
    let about = "Changes of many jobs, which go on by themselves.";
    Group { name: "Bulk tasks", about, operations, schemas: schemas() }
}

/// `POST /bulk`.
async fn create(call: Call) -> Result<Response, ApiError> {
    call.note_key();
    let by = call.submitter().key.map_or_else(String::new, |key| key.to_string());
    let (state, endpoint) = (call.state.clone(), call.endpoint.clone());
    // Before the jobs are counted: later ones are left out.
    let moment = state.engine().bulk_moment();
    let body = body::read(call.body, MANAGEMENT_BODY_BYTES_MAX, state.budget()).await?;
    let members = read_members(BULK_FIELDS, &body.bytes, Verb::Create)?;
    let action = match members.get("do").and_then(Value::as_str) {
        Some("cancel") => BulkAction::Cancel,
        Some("retry") => BulkAction::Retry,
        Some("delete") => BulkAction::Delete,
        _ => return Err(bad("`do` is required: cancel, retry or delete".to_owned())),
    };
    // The audit log says what is done with the jobs.
    let names = members.keys().map(|name| match name.as_str() {
        "do" => format!("do={}", action.as_str()),
        _ => name.clone(),
    });
    note_fields(names.collect::<Vec<_>>().iter());
    let mut selection = selection(action, &members)?;
    if let (BulkSelection::Matching(conditions, _), Some(Value::Object(filter))) =
        (&mut selection, members.get("filter"))
    {
        of_version(&state, &endpoint, &as_query(filter), conditions).map_err(|error| in_filter(&error))?;
    }
    let (matches, is_counted) = endpoint.jobs().count_selected(action, &selection).await?;
    if members.get("dryRun") == Some(&json!(true)) {
        let view = json!({
            "id": null, "endpoint": endpoint.id(), "do": action.as_str(), "state": "dryRun", "matches": matches,
            "counted": is_counted, "done": 0, "failed": 0, "createdAt": null, "endedAt": null, "by": by,
        });
        return Ok((StatusCode::ACCEPTED, axum::Json(view)).into_response());
    }
    let engine = state.engine();
    let task = engine.start_bulk(endpoint.id(), action, selection, matches, &by, moment).await?;
    let task = task.ok_or_else(|| {
        let text = "as many bulk tasks run as may at a time; wait for the end of one, or stop one";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_bulk_tasks", text).retry_after(5)
    })?;
    tracing::info!(endpoint = %endpoint.id(), task = %task.id, action = action.as_str(), matches, by, "bulk task created");
    let mut view = view(&task);
    view["counted"] = json!(is_counted);
    Ok((StatusCode::ACCEPTED, axum::Json(view)).into_response())
}

/// `GET /bulk`: the tasks of the endpoint, newest first.
async fn list(call: Call) -> Result<Response, ApiError> {
    let id = call.endpoint.id();
    let tasks = call.state.engine().bulk().list();
    let views: Vec<_> =
        tasks.iter().rev().filter(|task| task.endpoint == id).map(|task| view(task)).collect();
    Ok(axum::Json(views).into_response())
}

/// `GET /bulk/{task}`.
async fn get(call: Call) -> Result<Response, ApiError> {
    let task = call.state.engine().bulk().get(&call.endpoint.id(), task_id(&call)?.as_str());
    let task = task.ok_or_else(no_such_task)?;
    Ok(axum::Json(view(&task)).into_response())
}

/// `DELETE /bulk/{task}`: stops a task that runs, and forgets one that has ended.
async fn stop(call: Call) -> Result<Response, ApiError> {
    call.note_key();
    let (id, endpoint, now) = (task_id(&call)?, call.endpoint.id(), call.state.engine().now());
    let task = call.state.engine().bulk().stop_or_remove(&endpoint, &id, now).await?;
    let task = task.ok_or_else(no_such_task)?;
    Ok(axum::Json(view(&task)).into_response())
}

/// The id of the path, which has the form of a job's id.
fn task_id(call: &Call) -> Result<String, ApiError> {
    let id: Option<JobId> = call.last_path_part().parse().ok();
    id.map(|id| id.to_string()).ok_or_else(no_such_task)
}

fn no_such_task() -> ApiError {
    ApiError::new(
        StatusCode::NOT_FOUND,
        "bulk_task_not_found",
        "the endpoint has no bulk task with this id; a task is kept for a day after its end",
    )
}

/// The jobs that a request names.
fn selection(action: BulkAction, members: &Map<String, Value>) -> Result<BulkSelection, ApiError> {
    match (members.get("filter"), members.get("ids")) {
        (Some(Value::Object(filter)), None) => {
            check_conditions(filter)?;
            let query = as_query(filter);
            let conditions = of_action(action, conditions(&query).map_err(|error| in_filter(&error))?)?;
            Ok(BulkSelection::Matching(
                Box::new(conditions),
                search(&query).map_err(|error| in_filter(&error))?,
            ))
        }
        (None, Some(Value::Array(ids))) => listed(ids),
        _ => Err(bad("send either `filter` or `ids`: `filter` may be `{}` for all jobs".to_owned())),
    }
}

/// Refuses conditions without a value: with the value of an unset variable, a filter would be that of all jobs.
fn check_conditions(filter: &Map<String, Value>) -> Result<(), ApiError> {
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    match filter.iter().find(|(_, value)| is_empty(value)) {
        Some((name, _)) => {
            Err(bad(format!("`filter.{name}` is empty; leave it out to set no such condition")))
        }
        None => Ok(()),
    }
}

/// The same conditions, with only states that the action can change.
fn of_action(action: BulkAction, conditions: JobConditions) -> Result<JobConditions, ApiError> {
    let can_change = |state: &JobState| action.states().contains(state);
    let states: Vec<_> = if conditions.states.is_empty() {
        action.states().to_vec()
    } else {
        conditions.states.iter().copied().filter(can_change).collect()
    };
    if states.is_empty() {
        let known: Vec<_> = action.states().iter().map(|state| state.as_str()).collect();
        let text = format!(
            "`filter.status` has no state for `{}`; it must have one of {}",
            action.as_str(),
            known.join(", ")
        );
        return Err(bad(text));
    }
    Ok(JobConditions { states, ..conditions })
}

fn listed(ids: &[Value]) -> Result<BulkSelection, ApiError> {
    if ids.is_empty() || ids.len() > BULK_IDS_MAX {
        return Err(bad(format!("`ids` must have 1 to {BULK_IDS_MAX} ids of jobs")));
    }
    let mut jobs: Vec<JobId> = Vec::with_capacity(ids.len());
    for (place, id) in ids.iter().enumerate() {
        let job = id.as_str().and_then(|id| id.parse().ok());
        jobs.push(job.ok_or_else(|| bad(format!("`ids[{place}]` must be the id of a job")))?);
    }
    jobs.sort_unstable();
    jobs.dedup();
    Ok(BulkSelection::Listed(jobs))
}

/// A filter as the parameters of `/requests`.
fn as_query(filter: &Map<String, Value>) -> Query {
    let pairs = filter.iter().flat_map(|(name, value)| match value {
        Value::Object(members) if name == "input" => {
            members.iter().map(|(path, value)| (format!("input.{path}"), plain(value))).collect::<Vec<_>>()
        }
        value => vec![(name.clone(), plain(value))],
    });
    Query::from_pairs(pairs)
}

/// A value as a query has it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn in_filter(error: &ApiError) -> ApiError {
    bad(format!("in `filter`: {}", error.text()))
}

fn bad(text: String) -> ApiError {
    ApiError::bad_request("bad_field", text)
}

/// A task as clients read it.
pub(super) fn view(task: &BulkTask) -> Value {
    json!({
        "id": task.id,
        "endpoint": task.endpoint,
        "do": task.action.as_str(),
        "state": task.state.as_str(),
        "matches": task.matches,
        "done": task.done,
        "failed": task.failed,
        "createdAt": rfc3339(task.created_at),
        "endedAt": task.ended_at.map(rfc3339),
        "by": task.by,
    })
}

/// The schemas of requests and tasks.
fn schemas() -> Vec<(&'static str, Value)> {
    let nullable = |mut schema: Value| {
        schema["nullable"] = json!(true);
        schema
    };
    let running = [BulkState::Running, BulkState::Completed, BulkState::Stopped].map(BulkState::as_str);
    let actions = [BulkAction::Cancel, BulkAction::Retry, BulkAction::Delete].map(BulkAction::as_str);
    let states = [&running[..], &["dryRun"]].concat();
    let members = [
        ("id", nullable(job_id())),
        ("endpoint", text()),
        ("do", json!({ "type": "string", "enum": actions })),
        ("state", json!({ "type": "string", "enum": states })),
        ("matches", count()),
        ("counted", json!({ "type": "boolean" })),
        ("done", count()),
        ("failed", count()),
        ("createdAt", nullable(time())),
        ("endedAt", nullable(time())),
        ("by", text()),
    ];
    let required: Vec<_> = members.iter().map(|(name, _)| *name).filter(|name| *name != "counted").collect();
    let request = with_example(
        sent(BULK_FIELDS, Verb::Create, &["do"]),
        json!({ "do": "retry", "filter": { "status": "FAILED", "since": "2030-01-31T12:00:00Z" }, "dryRun": true }),
    );
    vec![("BulkRequest", request), ("BulkTask", object(&members, &required))]
}
