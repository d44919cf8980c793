//! `requests`: an endpoint's jobs, newest first.

use std::collections::HashMap;

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{
    DeliveryFilter, DeliveryState, EndpointHandle, Engine, JobConditions, JobFilter, JobSearch, JobSnapshot,
};
use longshore_model::limits::{REQUESTS_LIMIT_DEFAULT, REQUESTS_LIMIT_MAX};
use longshore_model::{JobId, JobState, KeyId, Millis, Submitter};

use super::job_response;
use super::webhooks::delivery_state;
use crate::HttpState;
use crate::gate::call::Call;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::query::Query;
use crate::wire::rfc3339::{parse_rfc3339, rfc3339};

/// The start of parameters that name a member of the input.
const INPUT: &str = "input.";
/// Most members of the input in one search.
const MEMBERS_MAX: usize = 10;
/// Most characters of a text that is searched.
const TEXT_CHARS_MAX: usize = 200;

/// The orders of a list.
pub(super) const ORDERS: [&str; 2] = ["asc", "desc"];

/// `GET /requests`, with conditions, a page and a text to search.
pub(super) async fn requests(call: Call) -> Result<Response, ApiError> {
    let (query, jobs) = (call.query()?, call.endpoint.jobs());
    let mut filter = job_filter(&query)?;
    filter.conditions.is_ascending = query.word("order", &ORDERS)? == Some("asc");
    of_version(&call.state, &call.endpoint, &query, &mut filter.conditions)?;
    let page = match search(&query)? {
        Some(search) => jobs.search(filter, &search).await?,
        None => jobs.list(filter).await?,
    };
    let mut body = JsonBody::new();
    body.text("{\"requests\":[");
    let calls = if query.flag("webhooks")? { Some(calls(&call.endpoint).await?) } else { None };
    for (at, job) in page.jobs.into_iter().enumerate() {
        let id = job.row.id;
        body.text(if at == 0 { "{" } else { ",{" });
        write_members(job, call.state.engine(), &mut body);
        if let Some(calls) = &calls {
            write_call(calls.get(&id).copied(), &mut body);
        }
        body.text("}");
    }
    body.text("],\"cursor\":");
    match page.cursor {
        Some(cursor) => body.string(&cursor.to_string()),
        None => body.text("null"),
    };
    body.text(",\"searched\":").number(page.searched).text(",\"of\":").number(page.of);
    let is_complete = page.cursor.is_none() && page.unread == 0;
    body.text(",\"complete\":").text(if is_complete { "true" } else { "false" });
    if query.flag("counts")? {
        let states = jobs.health().await?.states;
        write_counts(|state| states.of(state), &mut body);
    }
    body.text("}");
    Ok(body.into_response())
}

/// Writes the number of jobs in each state.
pub(crate) fn write_counts(of: impl Fn(JobState) -> u64, body: &mut JsonBody) {
    body.text(",\"counts\":{");
    for (at, state) in JobState::ALL.into_iter().enumerate() {
        body.text(if at == 0 { "" } else { "," }).string(state.as_str()).text(":").number(of(state));
    }
    body.text("}");
}

/// Writes how the latest webhook call of a job stands; `None` if the log has none.
pub(crate) fn write_call(state: Option<DeliveryState>, body: &mut JsonBody) {
    body.text(",\"webhook\":");
    match state {
        Some(state) => body.string(state.as_str()),
        None => body.text("null"),
    };
}

/// The state of the latest webhook call of each job of which the log has one.
pub(crate) async fn calls(endpoint: &EndpointHandle) -> Result<HashMap<JobId, DeliveryState>, ApiError> {
    let calls = endpoint.jobs().deliveries(DeliveryFilter::default()).await?;
    // The latest call of a job is the first one of the list.
    Ok(calls.into_iter().rev().map(|call| (call.job, call.state)).collect())
}

/// What the parameters `q`, `error`, `webhook` and `input.…` search for; `None` without any.
pub(crate) fn search(query: &Query) -> Result<Option<JobSearch>, ApiError> {
    let text = searched_text(query, "q")?.map(str::to_owned);
    let error = searched_text(query, "error")?.map(str::to_owned);
    let webhook = delivery_state(query, "webhook")?;
    let members = query.starting_with(INPUT).map(|(path, value)| (path.to_owned(), value.to_owned()));
    let members: Vec<_> = members.collect();
    if let Some((path, _)) = members.iter().find(|(path, value)| {
        path.is_empty() || path.chars().count() > TEXT_CHARS_MAX || value.chars().count() > TEXT_CHARS_MAX
    }) {
        let shown: String = path.chars().take(60).collect();
        return Err(bad(format!(
            "`{INPUT}{shown}` must have a path and a value of at most {TEXT_CHARS_MAX} characters"
        )));
    }
    if members.len() > MEMBERS_MAX {
        return Err(bad(format!("at most {MEMBERS_MAX} parameters may start with `{INPUT}`")));
    }
    let search = JobSearch { text, error, webhook, members };
    Ok(Some(search).filter(|search| *search != JobSearch::default()))
}

/// Adds the condition of the parameter `version`: the job was last started, or else submitted, while the endpoint had this
/// version.
pub(crate) fn of_version(
    state: &HttpState,
    endpoint: &EndpointHandle,
    query: &Query,
    conditions: &mut JobConditions,
) -> Result<(), ApiError> {
    let Some(wanted) = query.integer("version", 1, u64::from(u32::MAX))? else { return Ok(()) };
    let record = endpoint.record();
    let mut since: Vec<_> = state
        .engine()
        .catalog()
        .versions(&record)
        .iter()
        .filter_map(|version| Some((u64::from(version.version), version.entries.first()?.at)))
        .collect();
    since.sort_unstable();
    let began = since.iter().find(|(version, _)| *version == wanted).map(|(_, at)| *at);
    // No job is of a version that the endpoint never had, or that is no longer known.
    let began = if wanted == 1 && began.is_none() && record.version == 1 { Some(Millis(0)) } else { began };
    let next = since.iter().find(|(version, _)| *version > wanted).map(|(_, at)| *at);
    conditions.started_since = Some(began.unwrap_or(Millis::MAX));
    conditions.started_until = next;
    Ok(())
}

fn searched_text<'a>(query: &'a Query, name: &str) -> Result<Option<&'a str>, ApiError> {
    let text = query.get(name).map(str::trim).filter(|text| !text.is_empty());
    if text.is_some_and(|text| text.chars().count() > TEXT_CHARS_MAX) {
        let text = format!("`{name}` must have at most {TEXT_CHARS_MAX} characters");
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

pub(crate) fn conditions(query: &Query) -> Result<JobConditions, ApiError> {
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
        is_retried: query.flag("retried")?,
        started_since: None,
        started_until: None,
        is_ascending: false,
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
    let (input_bytes, output_bytes) = (row.input_bytes, job.output_bytes);
    job_response::write_members(job, body);
    for (name, time) in times {
        body.text(",").string(name).text(":");
        match time {
            Some(time) if time != Millis(0) => body.string(&rfc3339(time)),
            _ => body.text("null"),
        };
    }
    body.text(",\"inputBytes\":").number(u64::from(input_bytes)).text(",\"outputBytes\":");
    match output_bytes {
        Some(bytes) => body.number(bytes),
        None => body.text("null"),
    };
    body.text(",\"owner\":").string(&engine.keys().owner_name(owner)).text(",\"key\":");
    match key {
        Some(key) => body.string(&key.to_string()),
        None => body.text("null"),
    };
}
