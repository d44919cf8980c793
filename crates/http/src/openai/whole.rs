//! Answers that are not streamed.

use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::StatusCode;
use longshore_engine::{BudgetPermit, JobSnapshot, Jobs, StreamChunk, StreamFrom};
use longshore_model::limits::TTL_MS_MAX;
use longshore_model::{JobId, JobState};

use super::Answered;
use super::cancel_guard::CancelGuard;
use super::error::OpenAiError;
use super::joined::{JoinedText, answer_in};
use super::parts::Parts;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

/// The size limit of joined text, in bytes: that of an output.
const ANSWER_BYTES_MAX: usize = 20_000_000;

/// Waits for the end of the job and returns its result.
pub(super) async fn answer(mut guard: CancelGuard) -> Answered {
    // No job exists longer than this.
    let ended = guard.jobs.wait(guard.job, Duration::from_millis(TTL_MS_MAX)).await?;
    if !ended.row.state.is_terminal() {
        return Err(ApiError::unavailable("unavailable", "the server is stopping; retry"));
    }
    guard.disarm();
    of_ended(&guard.jobs, guard.job, ended).await
}

/// The response for a job that has ended.
pub(super) async fn of_ended(jobs: &Jobs, job: JobId, ended: JobSnapshot) -> Answered {
    if ended.row.state != JobState::Completed {
        return Ok(OpenAiError::of_job(&ended).into_response());
    }
    let result = result(jobs, job, ended).await?;
    Ok(OpenAiError::in_result(&result).map_or_else(|| json(&result), OpenAiError::into_response))
}

/// The result of the worker: the job's output, or the yielded chunks of a worker that does not aggregate them.
pub(super) async fn result(jobs: &Jobs, job: JobId, ended: JobSnapshot) -> Result<Bytes, ApiError> {
    let output = ended.output.unwrap_or_default();
    if !matches!(output.trim_ascii(), b"" | b"[]") {
        return Ok(answer_in(output));
    }
    let nothing = if output.is_empty() { Bytes::from_static(b"{}") } else { output };
    Ok(yielded(jobs, job).await?.unwrap_or(nothing))
}

/// The answer in the job's chunks: the JSON object that their text forms, or else the first chunk.
async fn yielded(jobs: &Jobs, job: JobId) -> Result<Option<Bytes>, ApiError> {
    let (mut first, mut text) = (None, JoinedText::default());
    let (mut parts, mut next) = (Parts::default(), 0);
    // The bytes of all chunks count against the budget until the response is sent.
    let mut permits = Vec::new();
    loop {
        let page = jobs.read_stream(job, StreamFrom::Offset(next), Duration::ZERO).await?;
        permits.push(page.room);
        for StreamChunk { offset, chunk } in page.chunks {
            next = offset.saturating_add(1);
            let Some(output) = parts.push(chunk) else { continue };
            let is_text = text.push(&output);
            let first = first.get_or_insert(output);
            if !is_text {
                return Ok(Some(held(answer_in(first.clone()), &permits)));
            }
            if text.bytes() > ANSWER_BYTES_MAX {
                let text = format!("the worker's answer is over {ANSWER_BYTES_MAX} bytes; ask with `stream`");
                return Err(ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "answer_too_long", text));
            }
        }
        if !page.more {
            break;
        }
    }
    Ok(text.into_object().or(first).map(|answer| held(answer, &permits)))
}

fn held(answer: Bytes, permits: &[BudgetPermit]) -> Bytes {
    permits.iter().fold(answer, |answer, permit| permit.around(answer))
}

fn json(text: &Bytes) -> Response {
    let mut body = JsonBody::new();
    body.raw(text);
    body.into_response()
}
