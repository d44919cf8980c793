//! Responses that show a job.

use axum::response::{IntoResponse as _, Response};
use longshore_engine::{JobSnapshot, write_record_members};
use longshore_model::{JobId, JobState};

use crate::wire::json_body::JsonBody;

/// Writes the members of a job, without braces. The output comes last, and is not copied.
pub(super) fn write_members(mut job: JobSnapshot, body: &mut JsonBody) {
    let output = job.output.take();
    body.hold(&job.room);
    write_record_members(&job, body.buffer());
    if let Some(output) = output {
        body.text(",\"output\":").raw(&output);
    }
}

/// A whole job, with its position in the queue if it is given.
pub(super) fn whole(job: JobSnapshot, position: Option<u64>) -> Response {
    let mut body = JsonBody::new();
    body.text("{");
    write_members(job, &mut body);
    if let Some(position) = position {
        body.text(",\"position\":").text(&position.to_string());
    }
    body.text("}");
    body.into_response()
}

/// A job's id and state alone.
pub(super) fn brief(id: JobId, state: JobState) -> Response {
    // Neither an id nor a state has characters to escape.
    let (before, between, state, after) = (r#"{"id":""#, r#"","status":""#, state.as_str(), r#""}"#);
    let around = before.len() + between.len() + state.len() + after.len();
    let mut body = JsonBody::with_capacity(around + id.text_len());
    body.text(before);
    id.write(body.buffer());
    body.text(between).text(state).text(after);
    body.into_response()
}
