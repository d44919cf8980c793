//! `requests`: an endpoint's jobs, newest first.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{Engine, JobFilter, JobSnapshot};
use longshore_model::limits::{REQUESTS_LIMIT_DEFAULT, REQUESTS_LIMIT_MAX};
use longshore_model::{JobState, Millis, Submitter};

use super::job_response;
use crate::gate::call::Call;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::query::Query;
use crate::wire::rfc3339::rfc3339;

/// `GET /requests?status=&limit=&cursor=`.
pub(super) async fn requests(call: Call) -> Result<Response, ApiError> {
    let page = call.endpoint.jobs().list(job_filter(&call.query()?)?).await?;
    let mut body = JsonBody::new();
    body.text("{\"requests\":[");
    for (at, job) in page.jobs.into_iter().enumerate() {
        body.text(if at == 0 { "" } else { "," });
        write_entry(job, call.state.engine(), &mut body);
    }
    body.text("],\"cursor\":");
    match page.cursor {
        Some(cursor) => body.string(&cursor.to_string()),
        None => body.text("null"),
    };
    body.text("}");
    Ok(body.into_response())
}

fn job_filter(query: &Query) -> Result<JobFilter, ApiError> {
    let state = query.get("status").filter(|text| !text.is_empty()).map(|text| {
        JobState::parse(text).ok_or_else(|| {
            let names = JobState::ALL.map(JobState::as_str).join(", ");
            ApiError::bad_request("bad_parameter", format!("`status` must be one of {names}"))
        })
    });
    let cursor = query.get("cursor").filter(|text| !text.is_empty()).map(|text| {
        text.parse().map_err(|_| {
            ApiError::bad_request("bad_parameter", "`cursor` must be the `cursor` of an earlier answer")
        })
    });
    let limit = query.integer("limit", 1, REQUESTS_LIMIT_MAX as u64)?;
    Ok(JobFilter {
        state: state.transpose()?,
        limit: limit.map_or(REQUESTS_LIMIT_DEFAULT, |limit| limit as usize),
        before: cursor.transpose()?,
    })
}

fn write_entry(job: JobSnapshot, engine: &Engine, body: &mut JsonBody) {
    let row = &job.row;
    let Submitter { owner, key } = row.submitter;
    let times = [
        ("createdAt", Some(row.created_at)),
        ("startedAt", (!row.never_taken).then_some(row.started_at)),
        ("completedAt", row.state.is_terminal().then_some(row.finished_at)),
    ];
    body.text("{");
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
    body.text("}");
}
