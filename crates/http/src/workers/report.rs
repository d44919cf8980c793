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
use crate::gate::auth;
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
    let reporter = Reporter::of(state, path, headers);
    let budget = state.budget().for_reports();
    async move {
        let Some(reporter) = reporter? else { return Ok(noted()) };
        match read(body, &budget).await? {
            Ok(body) => reporter.result(&body.bytes).await,
            // Boxed, here and below: few results need it, and every future would reserve its size.
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

/// The body, or the error of a job whose report is too large.
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
    /// `None` if the path names no valid worker and job.
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
            // The result is stored; the worker goes on until it asks again or is scaled down.
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
        answer(self.endpoint.append(self.worker, self.job, chunks).await)
    }

    async fn fail(self, error: String) -> Result<Response, ApiError> {
        let outcome = Outcome::Failed { error, output: None };
        answer(self.endpoint.report(self.worker, self.job, outcome).await)
    }
}

/// The response to the worker.
fn answer(kept: Result<(), EndpointError>) -> Result<Response, ApiError> {
    match kept {
        // The job or the endpoint is deleted: the worker can do nothing about it.
        Ok(()) | Err(EndpointError::Refused(_) | EndpointError::Deleted) => Ok(noted()),
        Err(error) => Err(error.into()),
    }
}

fn noted() -> Response {
    json(Bytes::from_static(b"{}"))
}
