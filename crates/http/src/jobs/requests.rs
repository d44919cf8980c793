//! `requests`: an endpoint's jobs, newest first.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{Engine, JobConditions, JobFilter, JobSnapshot};
use longshore_model::limits::{REQUESTS_LIMIT_DEFAULT, REQUESTS_LIMIT_MAX};
use longshore_model::{JobState, KeyId, Millis, Submitter};

use super::job_response;
use crate::gate::call::Call;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};

/// Most characters of a text that is searched.
const TEXT_CHARS_MAX: usize = 200;

/// `GET /requests`, with conditions, a page and a text to search.
pub(super) async fn requests(call: Call) -> Result<Response, ApiError> {
    let (query, jobs) = (call.query()?, call.endpoint.jobs());
    let filter = job_filter(&query)?;
    let page = match searched_text(&query)? {
        Some(text) => jobs.search(filter, text).await?,
        None => jobs.list(filter).await?,
    };
    let mut body = JsonBody::new();
    body.text("{\"requests\":[");
    for (at, job) in page.jobs.into_iter().enumerate() {
        body.text(if at == 0 { "{" } else { ",{" });
        write_members(job, call.state.engine(), &mut body);
        body.text("}");
    }
    body.text("],\"cursor\":");
    match page.cursor {
        Some(cursor) => body.string(&cursor.to_string()),
        None => body.text("null"),
    };
    body.text(",\"searched\":").number(page.searched).text(",\"of\":").number(page.of);
    body.text(",\"complete\":").text(if page.cursor.is_none() { "true" } else { "false" });
    if query.flag("counts") {
        let health = jobs.health().await?;
        body.text(",\"counts\":{\"IN_QUEUE\":").number(health.in_queue);
        body.text(",\"IN_PROGRESS\":").number(health.in_progress).text("}");
    }
    body.text("}");
    Ok(body.into_response())
}

fn searched_text(query: &Query) -> Result<Option<&str>, ApiError> {
    let text = query.get("q").map(str::trim).filter(|text| !text.is_empty());
    if text.is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX) {
        let text = format!("`q` must have at most {TEXT_CHARS_MAX} characters");
        return Err(ApiError::bad_request("bad_parameter", text));
    }
    Ok(text)
}

/// The conditions and the page that the parameters of a list say.
pub(crate) fn job_filter(query: &Query) -> Result<JobFilter, ApiError> {
    let cursor = value(query, "cursor").map(|text| {
        text.parse().map_err(|_| bad("`cursor` must be the `cursor` of an earlier answer".to_owned()))
    });
    let limit = query.integer("limit", 1, REQUESTS_LIMIT_MAX as u64)?;
    Ok(JobFilter {
        conditions: conditions(query)?,
        limit: limit.map_or(REQUESTS_LIMIT_DEFAULT, |limit| limit as usize),
        before: cursor.transpose()?,
    })
}

fn conditions(query: &Query) -> Result<JobConditions, ApiError> {
    let worker = value(query, "worker")
        .map(|text| text.parse().map_err(|_| bad("`worker` must be the id of a worker".to_owned())));
    let key = value(query, "key")
        .map(|text| KeyId::parse(text).ok_or_else(|| bad("`key` must be the id of an API key".to_owned())));
    Ok(JobConditions {
        states: states(query)?,
        since: time(query, "since")?,
        until: time(query, "until")?,
        worker: worker.transpose()?,
        key: key.transpose()?,
        id_part: value(query, "id").map(str::to_lowercase),
        delay_ms_min: query.integer("minDelayMs", 0, u64::MAX)?,
        execution_ms_min: query.integer("minExecutionMs", 0, u64::MAX)?,
        is_retried: query.flag("retried"),
    })
}

fn states(query: &Query) -> Result<Vec<JobState>, ApiError> {
    let Some(text) = value(query, "status") else { return Ok(Vec::new()) };
    let states: Option<Vec<_>> = text.split(',').map(JobState::parse).collect();
    states.ok_or_else(|| {
        let names = JobState::ALL.map(JobState::as_str).join(", ");
        bad(format!("`status` must be one of {names}, or several between commas"))
    })
}

fn time(query: &Query, name: &str) -> Result<Option<Millis>, ApiError> {
    let time = value(query, name).map(|text| {
        parse_rfc3339(text)
            .ok_or_else(|| bad(format!("`{name}` must be a time as in RFC 3339, like 2026-01-31T12:00:00Z")))
    });
    time.transpose()
}

/// The value of a parameter; `None` also for an empty one.
fn value<'a>(query: &'a Query, name: &str) -> Option<&'a str> {
    query.get(name).filter(|text| !text.is_empty())
}

fn bad(text: String) -> ApiError {
    ApiError::bad_request("bad_parameter", text)
}

/// Writes the members of a listed job: those of `/status`, its times and who submitted it.
pub(crate) fn write_members(job: JobSnapshot, engine: &Engine, body: &mut JsonBody) {
    let row = &job.row;
    let Submitter { owner, key } = row.submitter;
    let times = [
        ("createdAt", Some(row.created_at)),
        ("startedAt", (!row.never_taken).then_some(row.started_at)),
        ("completedAt", row.state.is_terminal().then_some(row.finished_at)),
    ];
    job_response::write_members(job, body);
    for (name, time) in times {
        body.text(",").string(name).text(":");
        match time {
            Some(time) if time != Millis(0) => body.string(&rfc3339(time)),
            _ => body.text("null"),
        };
    }
    body.text(",\"owner\":").string(&engine.keys().owner_name(owner)).text(",\"key\":");
    match key {
        Some(key) => body.string(&key.to_string()),
        None => body.text("null"),
    };
}
