//! What a worker holds open: the question for jobs and the question for jobs to stop.
//!
//! A worker asks again the moment it is answered, up to two thousand times a second, whatever the answer. So
//! "nothing" is said only after a hold, a refusal only after a pause, and where the worker shall wait for the
//! server it hears 429, the one answer at which it pauses by itself.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use longshore_engine::{AskError, EndpointHandle, TakeAsk, TakenJob};
use longshore_model::WorkerId;
use tokio::time::{Instant, sleep_until};

use super::address::{WorkerPath, WorkerQuery, segment};
use super::job_object;
use crate::errors::Failure;
use crate::json_body::JsonBody;
use crate::{HttpState, keys};

/// No poll is answered with nothing or an error sooner than this.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a worker that hears 429 stays away, in seconds: a number of its own, told here for others.
const WORKER_BACKS_OFF_S: u64 = 5;

/// `GET job-take/{worker}`: one job as an object.
pub(super) async fn take(
    state: State<HttpState>,
    path: WorkerPath,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let take = Take { most: Some(1) };
    poll(state, path, &uri, &headers, take).await
}

/// `GET job-take-batch/{worker}?batch_size=N`: up to so many jobs as an array.
pub(super) async fn take_batch(
    state: State<HttpState>,
    path: WorkerPath,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    poll(state, path, &uri, &headers, Take { most: None }).await
}

/// `GET job-stop/{worker}`: the jobs that the worker must stop.
pub(super) async fn stop(
    state: State<HttpState>,
    path: WorkerPath,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    poll(state, path, &uri, &headers, Stop).await
}

/// A question that is held open.
trait Question {
    /// The answer; none if there was nothing when the hold was over.
    async fn ask(
        self,
        endpoint: &EndpointHandle,
        worker: WorkerId,
        query: &WorkerQuery,
        hold: Duration,
    ) -> Result<Option<JsonBody>, AskError>;
}

/// For jobs. Without `most` the query says how many, and the answer is an array: the oldest workers fail at an
/// array where they asked for one job.
struct Take {
    most: Option<u32>,
}

impl Question for Take {
    async fn ask(
        self,
        endpoint: &EndpointHandle,
        worker: WorkerId,
        query: &WorkerQuery,
        hold: Duration,
    ) -> Result<Option<JsonBody>, AskError> {
        let slots = self.most.unwrap_or_else(|| query.batch_size());
        let ask = TakeAsk { slots, says_busy: query.says_busy(), hold_ms: hold.as_millis() as u64 };
        let jobs: Vec<TakenJob> = endpoint.take(worker, ask).await?;
        Ok(match (jobs.first(), self.most) {
            (None, _) => None,
            (Some(job), Some(_)) => Some(job_object::one(job)),
            (Some(_), None) => Some(job_object::many(&jobs)),
        })
    }
}

/// For jobs to stop.
struct Stop;

impl Question for Stop {
    async fn ask(
        self,
        endpoint: &EndpointHandle,
        worker: WorkerId,
        _query: &WorkerQuery,
        hold: Duration,
    ) -> Result<Option<JsonBody>, AskError> {
        let jobs = endpoint.stops(worker, hold).await?;
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

async fn poll(
    State(state): State<HttpState>,
    WorkerPath { endpoint, worker, .. }: WorkerPath,
    uri: &Uri,
    headers: &HeaderMap,
    question: impl Question,
) -> Response {
    let began = Instant::now();
    let answer = answer(&state, &endpoint, &worker, uri, headers, question).await;
    match answer {
        Ok(Some(body)) => return body.into_response(),
        // An early "nothing" is a worker that is draining: it gets none, however often it asks.
        Ok(None) => sleep_until(began + PAUSE.min(state.worker_hold())).await,
        Err(_) => sleep_until(began + PAUSE).await,
    }
    answer.map(|_| StatusCode::NO_CONTENT).into_response()
}

async fn answer(
    state: &HttpState,
    endpoint: &str,
    worker: &str,
    uri: &Uri,
    headers: &HeaderMap,
    question: impl Question,
) -> Result<Option<JsonBody>, Failure> {
    let endpoint = keys::authorize_worker(state, headers, endpoint)?;
    let query = WorkerQuery::parse(worker, uri.query());
    let worker = segment(worker).parse().map_err(|_| {
        tracing::warn!(endpoint = %endpoint.record().id, "a worker calls itself what cannot be a worker's id");
        Failure::bad_request("bad_worker_id", "the path's last part is not a worker id: 1 to 128 of `A-Za-z0-9_-.:`")
    })?;
    question.ask(&endpoint, worker, &query, state.worker_hold()).await.map_err(|error| match error {
        AskError::Unavailable(_) => Failure::new(
            StatusCode::TOO_MANY_REQUESTS,
            "unavailable",
            "the server hands out no jobs at the moment; ask again",
        )
        .retry_after(WORKER_BACKS_OFF_S),
        other => other.into(),
    })
}
