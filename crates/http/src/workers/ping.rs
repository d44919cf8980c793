//! The heartbeat of a worker. Its job list can be old, so a ping never changes a terminal job, and its response tells
//! the worker nothing.

use axum::http::StatusCode;
use axum::http::request::Parts;
use longshore_engine::EndpointError;
use longshore_model::WorkerId;

use super::path::{WorkerQuery, segment};
use crate::HttpState;
use crate::gate::{auth, peer};
use crate::wire::api_error::ApiError;
use crate::wire::route_path::RoutePath;

/// `GET ping/{worker}?job_id=a%2Cb`; with `status=unhealthy` once, from a worker that is about to exit.
pub(super) fn ping(
    state: &HttpState,
    path: RoutePath<'_>,
    head: &Parts,
) -> impl Future<Output = Result<StatusCode, ApiError>> + Send + use<> {
    let endpoint = auth::authorize_worker(state, &head.headers, path.endpoint, Some(path.worker));
    let query = WorkerQuery::parse(path.worker, head.uri.query());
    // A list that is sent again is older than what this server has delivered since, and would count twice.
    let jobs = if peer::is_sent_again() { None } else { Some(query.job_ids()) };
    let reason = query.unfit_reason();
    let worker = segment(path.worker).parse::<WorkerId>();
    async move {
        let (endpoint, Ok(worker)) = (endpoint?, worker) else { return Ok(StatusCode::OK) };
        let applied = match reason {
            Some(reason) => endpoint.workers().report_unfit(worker, reason).await,
            None => endpoint.workers().ping(worker, jobs).await,
        };
        if let Err(EndpointError::Unavailable(reason) | EndpointError::CommitFailed(reason)) = applied {
            // A 5xx would make the worker repeat this ping later, with an old list.
            tracing::debug!(reason, "ping not applied");
        }
        Ok(StatusCode::OK)
    }
}
