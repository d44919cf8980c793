//! Answers in one piece.

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use longshore_engine::{EndpointHandle, JobSnapshot, StreamFrom};
use longshore_model::limits::TTL_MS_MAX;
use longshore_model::{JobId, JobState};
use serde_json::value::RawValue;

use super::Answered;
use super::caller::Caller;
use super::problem::Problem;
use crate::errors::Failure;
use crate::json_body::JsonBody;

/// Waits for the job's end, and answers with its result.
pub(super) async fn answer(mut caller: Caller) -> Answered {
    // Longer than any job lives.
    let ended = caller.endpoint.wait(caller.job, Duration::from_millis(TTL_MS_MAX)).await?;
    if !ended.row.state.is_terminal() {
        return Err(Failure::unavailable("unavailable", "the server is stopping; ask again"));
    }
    caller.is_served();
    of_ended(&caller.endpoint, caller.job, ended).await
}

/// The answer that a job came to.
pub(super) async fn of_ended(endpoint: &EndpointHandle, job: JobId, ended: JobSnapshot) -> Answered {
    if ended.row.state != JobState::Completed {
        return Ok(Problem::of_job(&ended).into_response());
    }
    let result = result(endpoint, job, ended).await?;
    Ok(Problem::in_result(&result).map_or_else(|| json(&result), Problem::into_response))
}

/// What the worker made: the job's output, or what it yielded where it does not give that back at its end. A generator
/// wraps it into a list.
pub(super) async fn result(
    endpoint: &EndpointHandle,
    job: JobId,
    ended: JobSnapshot,
) -> Result<Bytes, Failure> {
    let output = ended.output.unwrap_or_default();
    if !matches!(output.trim_ascii(), b"" | b"[]") {
        return Ok(unwrapped(output));
    }
    let page = endpoint.read_stream(job, StreamFrom::Offset(0), Duration::ZERO).await?;
    let first = page.chunks.into_iter().next().map(|chunk| chunk.bytes);
    Ok(first.map_or(if output.is_empty() { Bytes::from_static(b"{}") } else { output }, unwrapped))
}

/// The only element of a list; anything else as it is.
fn unwrapped(json: Bytes) -> Bytes {
    let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(&json) else { return json };
    match elements.as_slice() {
        [only] => json.slice_ref(only.get().as_bytes()),
        _ => json,
    }
}

fn json(text: &Bytes) -> Response {
    let mut body = JsonBody::new();
    body.raw(text);
    body.into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_one_are_unwrapped_byte_for_byte() {
        for (json, expected) in [
            ("[ {\"a\": 1.0} ]", "{\"a\": 1.0}"),
            ("[1,2]", "[1,2]"),
            ("{\"a\":[1]}", "{\"a\":[1]}"),
            ("[[1]]", "[1]"),
            ("[]", "[]"),
        ] {
            assert_eq!(unwrapped(Bytes::from_static(json.as_bytes())), expected);
        }
    }
}
