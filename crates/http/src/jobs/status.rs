//! `status` and `status-sync`: a job, and with `?position=true` the position of a queued job.

use std::time::Duration;

use axum::response::Response;
use longshore_engine::{JobSnapshot, Jobs};
use longshore_model::limits::{STATUS_TTL_MS_MIN, TTL_MS_MAX, WAIT_MS_DEFAULT, WAIT_MS_MAX, WAIT_MS_MIN};
use longshore_model::{JobState, Permission};
use longshore_planted::{Bug, planted};

use super::job_response;
use crate::gate::call::Call;
use crate::gate::peer;
use crate::wire::api_error::ApiError;

/// `GET|POST /status/{job}`. With `?ttl=N` the job is deleted N ms from now, which needs more than the permission to
/// read.
pub(super) async fn status(call: Call) -> Result<Response, ApiError> {
    let (job, query) = (call.job()?, call.query()?);
    let ttl_ms = query.integer("ttl", STATUS_TTL_MS_MIN, TTL_MS_MAX)?;
    let job = match ttl_ms {
        Some(ttl_ms) if !planted(Bug::TtlIgnored) => {
            call.require(Permission::WriteJobs)?;
            call.endpoint.jobs().set_ttl(job, ttl_ms).await?
        }
        _ => call.endpoint.jobs().status(job).await?,
    };
    let position = position(call.endpoint.jobs(), &job, query.flag("position")?).await?;
    Ok(job_response::whole(job, position))
}

/// `GET|POST /status-sync/{job}`: held until the job is terminal or `wait` has passed.
pub(super) async fn status_sync(call: Call) -> Result<Response, ApiError> {
    let (job, query) = (call.job()?, call.query()?);
    let wait_ms = query.integer("wait", WAIT_MS_MIN, WAIT_MS_MAX)?.unwrap_or(WAIT_MS_DEFAULT);
    let wait = peer::left_of(Duration::from_millis(wait_ms));
    let wants_position = query.flag("position")?;
    drop(query);
    let (_, endpoint) = call.into_wait();
    let job = endpoint.jobs().wait(job, wait).await?;
    let position = position(endpoint.jobs(), &job, wants_position).await?;
    Ok(job_response::whole(job, position))
}

/// The position of a queued job, if it was requested. A job that is taken at this moment has none.
async fn position(jobs: &Jobs, job: &JobSnapshot, is_requested: bool) -> Result<Option<u64>, ApiError> {
    if !is_requested || job.row.state != JobState::InQueue {
        return Ok(None);
    }
    Ok(jobs.position(job.row.id).await?)
}
