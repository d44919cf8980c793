//! `status` and `status-sync`: how a job stands.

use std::time::Duration;

use axum::response::Response;
use longshore_model::Operation;
use longshore_model::limits::{STATUS_TTL_MS_MIN, TTL_MS_MAX, WAIT_MS_DEFAULT, WAIT_MS_MAX, WAIT_MS_MIN};
use longshore_planted::{Bug, planted};

use super::call::Call;
use super::record;
use crate::errors::Failure;

/// `GET|POST /status/{job}`. With `?ttl=N` the job is deleted N ms from now, which takes more than the
/// permission to read.
pub(super) async fn status(call: Call) -> Result<Response, Failure> {
    let job = call.job()?;
    let ttl_ms = call.query()?.integer("ttl", STATUS_TTL_MS_MIN, TTL_MS_MAX)?;
    let job = match ttl_ms {
        Some(ttl_ms) if !planted(Bug::TtlIgnored) => {
            call.require(Operation::Jobs)?;
            call.endpoint.keep(job, ttl_ms).await?
        }
        _ => call.endpoint.status(job).await?,
    };
    record::counted(job, call.state.answers())
}

/// `GET|POST /status-sync/{job}`: held until the job is terminal or `wait` passed.
pub(super) async fn status_sync(call: Call) -> Result<Response, Failure> {
    let job = call.job()?;
    let wait_ms = call.query()?.integer("wait", WAIT_MS_MIN, WAIT_MS_MAX)?.unwrap_or(WAIT_MS_DEFAULT);
    let (state, endpoint) = call.into_wait();
    let job = endpoint.wait(job, Duration::from_millis(wait_ms)).await?;
    record::counted(job, state.answers())
}
