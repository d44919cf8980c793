//! `cancel`, `retry` and `purge-queue`. Their bodies are not read: some clients send none, some `{}`.

use axum::response::{IntoResponse as _, Response};

use super::job_response;
use crate::gate::call::Call;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

/// `POST /cancel/{job}`. A terminal job stays as it is, and the response shows its state.
pub(super) async fn cancel(call: Call) -> Result<Response, ApiError> {
    let job = call.endpoint.jobs().cancel(call.job()?).await?;
    Ok(job_response::brief(job.id, job.state))
}

/// `POST /retry/{job}`.
pub(super) async fn retry(call: Call) -> Result<Response, ApiError> {
    let job = call.endpoint.jobs().retry(call.job()?).await?;
    Ok(job_response::brief(job.id, job.state))
}

/// `POST /purge-queue`. Its `status` is lowercase, unlike that of jobs.
pub(super) async fn purge(call: Call) -> Result<Response, ApiError> {
    let removed = call.endpoint.jobs().purge().await?;
    let mut body = JsonBody::new();
    body.text("{\"removed\":").number(removed).text(",\"status\":\"completed\"}");
    Ok(body.into_response())
}
