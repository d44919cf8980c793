//! The gate that every job operation is behind: key, endpoint, rate; in this order, and before the body.

use std::future::ready;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::{HeaderMap, Uri};
use longshore_engine::{EndpointHandle, LiveKey};
use longshore_model::{JobId, Operation, Submitter};

use crate::edge::Answering;
use crate::errors::Failure;
use crate::keys::Standing;
use crate::query::Query;
use crate::rate_limits::Bucket;
use crate::route_path::RoutePath;
use crate::{HttpState, keys};

/// What a request must have to get to an operation.
#[derive(Clone, Copy)]
pub(super) struct Gate {
    permission: Operation,
    bucket: Option<Bucket>,
}

impl Gate {
    /// A permission, and a rate limit.
    pub(super) const fn limited(permission: Operation, bucket: Bucket) -> Self {
        Self { permission, bucket: Some(bucket) }
    }

    /// A permission alone.
    pub(super) const fn free(permission: Operation) -> Self {
        Self { permission, bucket: None }
    }

    /// Runs `operation` for a request that may pass.
    ///
    /// What the gate decides it decides at once, so that the future is little more than the operation's own: one that
    /// is nested in others is copied with each of them as they are made, at 1 200 instructions for a submit. An async
    /// block that awaits what it was given has room for it twice: 3 KB for everybody who waits.
    pub(super) fn pass<H, F>(
        self,
        state: HttpState,
        path: RoutePath<'_>,
        request: Request,
        operation: H,
    ) -> Answering
    where
        H: FnOnce(Call) -> F,
        F: Future<Output = Result<Response, Failure>> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let found = keys::authorize_endpoint(&state, &parts.headers, self.permission, path.endpoint);
        let (key, endpoint) = match found {
            Ok(found) => found,
            Err(failure) => return Box::pin(ready(failure.into_response())),
        };
        let admission = self.bucket.map(|bucket| {
            let running = endpoint.running_workers();
            state.limiter().admit(key.owner, endpoint.no(), bucket, running)
        });
        let admission = match admission.transpose() {
            Ok(admission) => admission,
            Err(overrun) => return Box::pin(ready(overrun.into_response())),
        };
        let job = path.job.parse().ok();
        let answering =
            operation(Call { state, key, endpoint, job, uri: parts.uri, headers: parts.headers, body });
        Box::pin(answering.map(move |answered| {
            let response = answered.unwrap_or_else(Failure::into_response);
            match admission {
                Some(admission) => admission.close(response),
                None => response,
            }
        }))
    }
}

/// A request that passed the gate.
pub(super) struct Call {
    pub(super) state: HttpState,
    pub(super) endpoint: EndpointHandle,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
    key: Arc<LiveKey>,
    job: Option<JobId>,
    uri: Uri,
}

impl Call {
    /// The job of the path. A text that is no job id names no job.
    pub(super) fn job(&self) -> Result<JobId, Failure> {
        self.job.ok_or_else(Failure::no_such_job)
    }

    /// What a job carries that this request submits.
    pub(super) fn submitter(&self) -> Submitter {
        self.key.submitter()
    }

    /// The last part but one of the path, as it is.
    pub(super) fn path_part_before_last(&self) -> &str {
        self.uri.path().rsplit('/').nth(1).unwrap_or_default()
    }

    /// The query parameters.
    pub(super) fn query(&self) -> Result<Query, Failure> {
        Query::of(&self.uri)
    }

    /// What is needed to wait for something. The head is let go of, and with it the connection's read buffer that it
    /// lies in: 8 KiB for everybody who waits.
    pub(super) fn into_wait(self) -> (HttpState, EndpointHandle) {
        (self.state, self.endpoint)
    }

    /// What the key permits here, for an answer that goes on.
    pub(super) fn standing(&self, operation: Operation) -> Standing {
        Standing::of(&self.key, operation, self.endpoint.id())
    }

    /// Asks for more permission than the gate did.
    pub(super) fn require(&self, operation: Operation) -> Result<(), Failure> {
        let now = keys::now_for(&self.key, &self.state);
        let permits = self.key.permits(operation, Some(&self.endpoint.id()), now);
        if permits { Ok(()) } else { Err(Failure::unauthorized()) }
    }
}
