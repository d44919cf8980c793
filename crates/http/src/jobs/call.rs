//! The gate that every job operation is behind: key, endpoint, rate; in this order, and before the body.

use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Uri};
use longshore_engine::EndpointHandle;
use longshore_model::{ApiKey, JobId, Operation};

use crate::errors::Failure;
use crate::query::Query;
use crate::rate_limits::Bucket;
use crate::{HttpState, keys};

/// What a request must have to get to an operation.
#[derive(Clone, Copy)]
pub(super) struct Gate {
    permission: Operation,
    bucket: Option<Bucket>,
}

impl Gate {
    /// A permission, and a rate limit.
    pub(super) fn limited(permission: Operation, bucket: Bucket) -> Self {
        Self { permission, bucket: Some(bucket) }
    }

    /// A permission alone.
    pub(super) fn free(permission: Operation) -> Self {
        Self { permission, bucket: None }
    }

    /// Runs `operation` for a request that may pass.
    pub(super) async fn pass<H, F>(self, state: HttpState, mut request: Request, operation: H) -> Response
    where
        H: FnOnce(Call) -> F,
        F: Future<Output = Result<Response, Failure>>,
    {
        let (endpoint, job) = path_parameters(&mut request).await;
        let (parts, body) = request.into_parts();
        let found = keys::authorize_endpoint(&state, &parts.headers, self.permission, &endpoint);
        let (key, endpoint) = match found {
            Ok(found) => found,
            Err(failure) => return failure.into_response(),
        };
        let admission = self.bucket.map(|bucket| {
            let running = endpoint.running_workers();
            state.limiter().admit(&key.id, endpoint.record().no, bucket, running)
        });
        let admission = match admission.transpose() {
            Ok(admission) => admission,
            Err(overrun) => return overrun.into_response(),
        };
        let call = Call { state, key, endpoint, job, uri: parts.uri, headers: parts.headers, body };
        let response = operation(call).await.unwrap_or_else(Failure::into_response);
        match admission {
            Some(admission) => admission.close(response),
            None => response,
        }
    }
}

/// The `{endpoint}` and `{job}` of a path; empty where they are not there or are no text, which finds nothing.
async fn path_parameters(request: &mut Request) -> (String, String) {
    let mut found = (String::new(), String::new());
    if let Ok(params) = request.extract_parts::<RawPathParams>().await {
        for (name, value) in &params {
            match name {
                "endpoint" => value.clone_into(&mut found.0),
                "job" => value.clone_into(&mut found.1),
                _ => {}
            }
        }
    }
    found
}

/// A request that passed the gate.
pub(super) struct Call {
    pub(super) state: HttpState,
    pub(super) endpoint: EndpointHandle,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    key: Arc<ApiKey>,
    job: String,
    uri: Uri,
}

impl Call {
    /// The job of the path. A text that is no job id names no job.
    pub(super) fn job(&self) -> Result<JobId, Failure> {
        self.job.parse().map_err(|_| Failure::no_such_job())
    }

    /// The query parameters.
    pub(super) fn query(&self) -> Result<Query, Failure> {
        Query::of(&self.uri)
    }

    /// Asks for more permission than the gate did.
    pub(super) fn require(&self, operation: Operation) -> Result<(), Failure> {
        let permits =
            self.key.permits(operation, Some(&self.endpoint.record().id), self.state.engine().now());
        if permits { Ok(()) } else { Err(Failure::unauthorized()) }
    }
}
