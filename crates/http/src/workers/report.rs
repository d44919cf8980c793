//! A worker's reports: its result, its progress, a chunk of its stream.
//!
//! A worker retries only after a 5xx, three times within 5 s; after any other refusal its result is lost. So every
//! report of an authorized worker is answered 200, even one that does not count (an unknown or terminal job, or another
//! worker's) and one that cannot be read (the job fails with the reason). Only a server that cannot store the report
//! returns 503.

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
use crate::gate::{auth, peer};
use crate::wire::api_error::ApiError;
use crate::wire::body::{self, BodyBudget, ReadBody};
use crate::wire::json_body::json;
use crate::wire::route_path::RoutePath;

/// `POST job-done/{worker}/{job}`: a result, or a progress value with the status `IN_PROGRESS`.
pub(super) fn done(
    state: &HttpState,
    path: RoutePath<'_>,
    headers: &HeaderMap,
    body: Body,
) -> impl Future<Output = Result<Response, ApiError>> + Send + use<> {
    receive(state, path, headers, body, |reporter, body| async move { reporter.result(&body.bytes).await })
}

/// `POST job-stream/{worker}/{job}`: a chunk.
pub(super) fn stream(
    state: &HttpState,
    path: RoutePath<'_>,
    headers: &HeaderMap,
    body: Body,
) -> impl Future<Output = Result<Response, ApiError>> + Send + use<> {
    receive(state, path, headers, body, |reporter, body| async move { reporter.chunk(&body.bytes).await })
}

/// Authorizes the worker, reads the body of its report, and passes both to `handle`. The job fails if the body is too large
/// or cannot be decoded.
fn receive<H, F>(
    state: &HttpState,
    path: RoutePath<'_>,
    headers: &HeaderMap,
    body: Body,
    handle: H,
) -> impl Future<Output = Result<Response, ApiError>> + Send + use<H, F>
where
    H: FnOnce(Reporter, ReadBody) -> F + Send,
    F: Future<Output = Result<Response, ApiError>> + Send,
{
    let reporter = Reporter::of(state, path, headers);
    let budget = state.budget().for_reports();
    async move {
        let Some(reporter) = reporter? else { return Ok(accepted()) };
        match read(body, &budget).await? {
            Ok(body) => handle(reporter, body).await,
            // Boxed, here and below: few reports need it, and every future would reserve its size.
            Err(unreadable) => Box::pin(reporter.fail(unreadable)).await,
        }
    }
}

/// The body, or the error for the job if the body is too large or cannot be decoded.
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
        // Any other refusal would lose the result without an error for the client.
        Err(failure) if failure.is_about_encoding() => {
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
    /// `None` if the path names no valid worker and job.
    fn of(state: &HttpState, path: RoutePath<'_>, headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let endpoint = auth::authorize_worker(state, headers, path.endpoint, Some(path.worker))?;
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
        let wants_replacement = report.stop_pod;
        let stored = match report.into_kind() {
            ReportKind::Ended(outcome) => {
                self.endpoint.workers().report(self.worker.clone(), self.job, outcome).await
            }
            ReportKind::Progress(value) => {
                self.endpoint.workers().progress(self.worker.clone(), self.job, value).await
            }
        };
        let answer = answer(stored)?;
        if wants_replacement
            && let Err(error) = self.endpoint.workers().request_replacement(self.worker.clone()).await
        {
            // The result is stored; the worker runs until it asks for a replacement again or is scaled down.
            tracing::warn!(worker = %self.worker, %error, "worker not replaced");
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
        let post = peer::number();
        answer(self.endpoint.workers().append_once(self.worker, self.job, post, chunks).await)
    }

    async fn fail(self, error: String) -> Result<Response, ApiError> {
        let outcome = Outcome::Failed { error, output: None };
        answer(self.endpoint.workers().report(self.worker, self.job, outcome).await)
    }
}

/// The response to a report, by whether it was stored.
fn answer(stored: Result<(), EndpointError>) -> Result<Response, ApiError> {
    match stored {
        // The job or the endpoint is deleted: the worker can do nothing about it.
        Ok(()) | Err(EndpointError::Refused(_) | EndpointError::Deleted) => Ok(accepted()),
        Err(error) => Err(error.into()),
    }
}

/// The response that every report of an authorized worker gets: 200 with `{}`.
fn accepted() -> Response {
    json(Bytes::from_static(b"{}"))
}
