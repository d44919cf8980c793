//! The requests of a worker that are held open: takes, and polls for jobs to stop.
//!
//! A worker polls again immediately after each response, up to two thousand times per s. So an empty response comes only
//! after a hold, and a refusal only after a pause. A worker that should wait for the server gets 429, the one status
//! after which the worker pauses by itself.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use longshore_engine::{EndpointError, EndpointHandle, TakeRequest, TakenJob};
use longshore_model::WorkerId;
use tokio::time::{Instant, sleep_until};

use super::job_object;
use super::path::{WorkerQuery, segment};
use crate::HttpState;
use crate::gate::{auth, client, peer};
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;
use crate::wire::route_path::RoutePath;

/// Least time from a request to an error, or to an empty response unless the hold is shorter.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause of a worker after 429, in s: fixed in the SDK, sent for other workers.
const WORKER_BACKOFF_S: u64 = 5;

/// `GET job-take/{worker}`: returns one job as an object.
pub(super) fn take(
    state: &HttpState,
    path: RoutePath<'_>,
    head: &Parts,
) -> impl Future<Output = Response> + Send + use<> {
    poll(state, path, head, |query, address| TakePoll { most: None, says_busy: query.says_busy(), address })
}

/// `GET job-take-batch/{worker}?batch_size=N`: returns at most N jobs as an array.
pub(super) fn take_batch(
    state: &HttpState,
    path: RoutePath<'_>,
    head: &Parts,
) -> impl Future<Output = Response> + Send + use<> {
    poll(state, path, head, |query, address| TakePoll {
        most: Some(query.batch_size()),
        says_busy: query.says_busy(),
        address,
    })
}

/// `GET job-stop/{worker}`: returns the jobs that the worker must stop.
pub(super) fn stop(
    state: &HttpState,
    path: RoutePath<'_>,
    head: &Parts,
) -> impl Future<Output = Response> + Send + use<> {
    poll(state, path, head, |_, _| StopPoll)
}

/// A request that is held open.
trait Poll: Send {
    /// Returns the body of the response; `None` if there was nothing to return until the end of the hold.
    fn run(
        self,
        endpoint: EndpointHandle,
        worker: WorkerId,
        hold: Duration,
    ) -> impl Future<Output = Result<Option<JsonBody>, EndpointError>> + Send;
}

/// A request for jobs.
struct TakePoll {
    /// The most jobs to return as an array. `None`: one job as an object, because the oldest workers fail at an array
    /// where they asked for one job.
    most: Option<u32>,
    says_busy: Option<bool>,
    address: Option<IpAddr>,
}

impl Poll for TakePoll {
    #[expect(clippy::manual_async_fn, reason = "an async fn reserves the size of its arguments twice")]
    fn run(
        self,
        endpoint: EndpointHandle,
        worker: WorkerId,
        hold: Duration,
    ) -> impl Future<Output = Result<Option<JsonBody>, EndpointError>> + Send {
        async move {
            let slots = self.most.unwrap_or(1);
            let request = TakeRequest {
                slots,
                says_busy: self.says_busy,
                hold_ms: hold.as_millis() as u64,
                address: self.address,
            };
            let jobs: Vec<TakenJob> = endpoint.workers().take(worker, request).await?;
            Ok(match (jobs.first(), self.most) {
                (None, _) => None,
                (Some(job), None) => Some(job_object::one(job)),
                (Some(_), Some(_)) => Some(job_object::many(&jobs)),
            })
        }
    }
}

/// A request for jobs to stop.
struct StopPoll;

impl Poll for StopPoll {
    async fn run(
        self,
        endpoint: EndpointHandle,
        worker: WorkerId,
        hold: Duration,
    ) -> Result<Option<JsonBody>, EndpointError> {
        let jobs = endpoint.workers().stops(worker, hold).await?;
        if jobs.is_empty() {
            return Ok(None);
        }
        let mut body = JsonBody::new();
        body.text(r#"{"jobsToStop":["#);
        for (place, job) in jobs.iter().enumerate() {
            body.text(if place == 0 { "" } else { "," }).string(&job.to_string());
        }
        body.text("]}");
        Ok(Some(body))
    }
}

/// Authorizes a worker and runs its request. All that needs no waiting is done before the future is returned, so that the
/// future keeps nothing of the head: the head points into the connection's read buffer, 8 KiB per waiting worker.
fn poll<Q: Poll>(
    state: &HttpState,
    path: RoutePath<'_>,
    head: &Parts,
    parse: fn(&WorkerQuery<'_>, Option<IpAddr>) -> Q,
) -> impl Future<Output = Response> + Send + use<Q> {
    let began = Instant::now();
    let hold = state.worker_hold();
    let address = client::address(state, &head.headers).map(|client| client.address);
    let request = parse(&WorkerQuery::parse(path.worker, head.uri.query()), address);
    let admitted = admit(state, path, &head.headers);
    // Jobs for a disconnected worker would be lost until its lease ends.
    peer::hands_over();
    async move {
        let result = match admitted {
            Ok((endpoint, worker)) => request.run(endpoint, worker, hold).await.map_err(refused),
            Err(failure) => Err(failure),
        };
        match result {
            Ok(Some(body)) => return body.into_response(),
            // An early empty result means that the worker is drained: it gets no job, however often it polls.
            Ok(None) => sleep_until(began + PAUSE.min(hold)).await,
            Err(_) => sleep_until(began + PAUSE).await,
        }
        result.map(|_| StatusCode::NO_CONTENT).into_response()
    }
}

/// The endpoint and the id of the worker that sent the request.
fn admit(
    state: &HttpState,
    path: RoutePath<'_>,
    headers: &HeaderMap,
) -> Result<(EndpointHandle, WorkerId), ApiError> {
    let endpoint = auth::authorize_worker(state, headers, path.endpoint, Some(path.worker))?;
    let worker = segment(path.worker).parse().map_err(|_| {
        tracing::warn!(endpoint = %endpoint.id(), "worker id invalid");
        ApiError::bad_request(
            "bad_worker_id",
            "the path's last part is not a worker id: 1 to 128 of `A-Za-z0-9_-.:`",
        )
    })?;
    Ok((endpoint, worker))
}

fn refused(error: EndpointError) -> ApiError {
    match error {
        EndpointError::Unavailable(_)
        | EndpointError::CommitFailed(_)
        | EndpointError::Unreadable(_)
        | EndpointError::NoRoom
        | EndpointError::Overloaded => ApiError::new(
            StatusCode::TOO_MANY_REQUESTS,
            "unavailable",
            "the server delivers no jobs at the moment; retry later",
        )
        .retry_after(WORKER_BACKOFF_S),
        other => other.into(),
    }
}
