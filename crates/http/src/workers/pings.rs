//! The heartbeat. It is a hint: what it lists can be old, so it never changes a job that is over, and its
//! worker learns nothing from the answer.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use longshore_engine::AskError;

use super::address::{WorkerPath, WorkerQuery, segment};
use crate::errors::Failure;
use crate::{HttpState, keys};

/// `GET ping/{worker}?job_id=a%2Cb`, and once, from a worker that is about to exit, `status=unhealthy`.
pub(super) async fn ping(
    State(state): State<HttpState>,
    WorkerPath { endpoint, worker, .. }: WorkerPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    let endpoint = keys::authorize_worker(&state, &headers, &endpoint)?;
    let query = WorkerQuery::parse(&worker, uri.query());
    let Ok(worker) = segment(&worker).parse::<longshore_model::WorkerId>() else { return Ok(StatusCode::OK) };
    let heard = match query.unfit_reason() {
        Some(reason) => endpoint.unfit(worker, reason).await,
        None => endpoint.ping(worker, Some(query.job_ids())).await,
    };
    if let Err(AskError::Unavailable(reason)) = heard {
        // A 5xx would make the worker repeat this ping later, with a list that is old by then.
        tracing::debug!(reason, "a ping was not heard");
    }
    Ok(StatusCode::OK)
}
