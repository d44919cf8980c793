//! What a worker posts about a job: its result, how far it is, a chunk of its stream.
//!
//! A worker tries again only after a 5xx, three times within five seconds; any other refusal is the end of its
//! result. So every report of a worker that is let in is answered 200, also one that counts for nothing (the
//! job is unknown, over, or another worker's) and one that cannot be read (then the job fails and says why).
//! Only a server that could not keep it says 503.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use http_body::Body as _;
use longshore_engine::{EndpointError, EndpointHandle, Outcome};
use longshore_model::limits::{CHUNK_BYTES_MAX, WORKER_BODY_BYTES_MAX};
use longshore_model::{JobId, WorkerId};

use super::chunks::{posted, split};
use super::path::segment;
use super::report_body::{ReportBody, ReportKind};
use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;
use crate::wire::body::{self, BodyBudget, ReadBody};
use crate::wire::json_body::json;
use crate::wire::route_path::RoutePath;

/// `POST job-done/{worker}/{job}`: a result, or with the status `IN_PROGRESS` how far the job is.
pub(super) fn done(
    state: &HttpState,
    path: RoutePath<'_>,
    headers: &HeaderMap,
    body: Body,
) -> impl Future<Output = Result<Response, ApiError>> + Send + use<> {
    let reporter = Reporter::of(state, path, headers);
    let budget = state.budget().for_reports();
    async move {
        let Some(reporter) = reporter? else { return Ok(noted()) };
        match read(body, &budget).await? {
            Ok(body) => reporter.result(&body.bytes).await,
            // Boxed, here and below: every result would carry around what few of them need.
            Err(too_long) => Box::pin(reporter.fail(too_long)).await,
        }
    }
}

/// `POST job-stream/{worker}/{job}`: a chunk.
pub(super) fn stream(
    state: &HttpState,
    path: RoutePath<'_>,
    headers: &HeaderMap,
    body: Body,
) -> impl Future<Output = Result<Response, ApiError>> + Send + use<> {
    let reporter = Reporter::of(state, path, headers);
    let budget = state.budget().for_reports();
    async move {
        let Some(reporter) = reporter? else { return Ok(noted()) };
        match read(body, &budget).await? {
            Ok(body) => reporter.chunk(&body.bytes).await,
            Err(too_long) => reporter.fail(too_long).await,
        }
    }
}

/// The body, or the reason for which the job must fail because there is too much of it.
async fn read(body: Body, budget: &BodyBudget) -> Result<Result<ReadBody, String>, ApiError> {
    let sent = body.size_hint().exact().filter(|bytes| *bytes > WORKER_BODY_BYTES_MAX as u64);
    match body::read(body, WORKER_BODY_BYTES_MAX, budget).await {
        Ok(body) => Ok(Ok(body)),
        Err(failure) if failure.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            let what = match sent {
                Some(bytes) => format!("has {bytes} bytes, the limit is {WORKER_BODY_BYTES_MAX}"),
                None => format!("is over the limit of {WORKER_BODY_BYTES_MAX} bytes"),
            };
            Ok(Err(format!("the worker's report {what}: upload it to storage and return a link")))
        }
        // Any other refusal would be the end of its result, and nobody would learn why.
        Err(failure) if failure.is_about_packing() => {
            Ok(Err(format!("the worker's report cannot be read: {}", failure.text())))
        }
        Err(failure) => Err(failure),
    }
}

/// A worker that reports on a job.
struct Reporter {
    endpoint: EndpointHandle,
    worker: WorkerId,
    job: JobId,
}

impl Reporter {
    /// None where the path cannot name a worker and a job of ours.
    fn of(state: &HttpState, path: RoutePath<'_>, headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let endpoint = auth::authorize_worker(state, headers, path.endpoint)?;
        Ok(match (path.worker.parse(), segment(path.job).parse()) {
            (Ok(worker), Ok(job)) => Some(Self { endpoint, worker, job }),
            _ => None,
        })
    }

    async fn result(self, body: &Bytes) -> Result<Response, ApiError> {
        let report = match ReportBody::parse(body) {
            Ok(report) => report,
            Err(error) => {
                let error = format!("the worker's result cannot be read: {error}");
                return Box::pin(self.fail(error)).await;
            }
        };
        let refresh = report.stop_pod;
        let kept = match report.into_word() {
            ReportKind::Over(outcome) => self.endpoint.report(self.worker.clone(), self.job, outcome).await,
            ReportKind::Progress(value) => self.endpoint.progress(self.worker.clone(), self.job, value).await,
        };
        let answer = answer(kept)?;
        if refresh && let Err(error) = self.endpoint.request_replacement(self.worker.clone()).await {
            // The result is kept; the worker goes on until it asks again or is scaled down.
            tracing::warn!(worker = %self.worker, %error, "a worker that asked to be replaced was not");
        }
        Ok(answer)
    }

    async fn chunk(self, body: &Bytes) -> Result<Response, ApiError> {
        let report = match ReportBody::parse(body) {
            Ok(report) => report,
            Err(error) => return self.fail(format!("a chunk of the worker cannot be read: {error}")).await,
        };
        if let Some(error) = report.error {
            return self.fail(error).await;
        }
        let Some(output) = report.output else {
            return self.fail("a chunk of the worker has no `output`".to_owned()).await;
        };
        let chunks = split(posted(output, report.metrics), CHUNK_BYTES_MAX);
        answer(self.endpoint.append(self.worker, self.job, chunks).await)
    }

    async fn fail(self, error: String) -> Result<Response, ApiError> {
        let outcome = Outcome::Failed { error, output: None };
        answer(self.endpoint.report(self.worker, self.job, outcome).await)
    }
}

/// What the worker hears.
fn answer(kept: Result<(), EndpointError>) -> Result<Response, ApiError> {
    match kept {
        // A job or an endpoint that is gone: the worker cannot do anything about it.
        Ok(()) | Err(EndpointError::Refused(_) | EndpointError::Deleted) => Ok(noted()),
        Err(error) => Err(error.into()),
    }
}

fn noted() -> Response {
    json(Bytes::from_static(b"{}"))
}
