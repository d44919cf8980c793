//! The gate that every job operation is behind: key, endpoint, rate; in this order, and before the body.

use std::future::ready;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::{HeaderMap, Uri};
use longshore_engine::{EndpointHandle, TrackedKey};
use longshore_model::{JobId, Permission, Submitter};

use crate::HttpState;
use crate::gate::auth;
use crate::gate::auth::OngoingAccess;
use crate::gate::rate_limits::LimitedRoute;
use crate::wire::BoxResponse;
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::route_path::RoutePath;

/// What a request must have to get to an operation.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    permission: Permission,
    route: Option<LimitedRoute>,
}

impl Gate {
    /// A permission, and a rate limit.
    pub(crate) const fn limited(permission: Permission, route: LimitedRoute) -> Self {
        Self { permission, route: Some(route) }
    }

    /// A permission alone.
    pub(crate) const fn free(permission: Permission) -> Self {
        Self { permission, route: None }
    }

    /// Runs `operation` for a request that may pass.
    ///
    /// What the gate decides it decides at once, so that the future is little more than the operation's own: one that
    /// is nested in others is copied with each of them as they are made, at 1 200 instructions for a submit. An async
    /// block that awaits what it was given has room for it twice: 3 KB for everybody who waits.
    pub(crate) fn pass<H, F>(
        self,
        state: HttpState,
        path: RoutePath<'_>,
        request: Request,
        operation: H,
    ) -> BoxResponse
    where
        H: FnOnce(Call) -> F,
        F: Future<Output = Result<Response, ApiError>> + Send + 'static,
    {
        let (parts, body) = request.into_parts();
        let found = auth::authorize_endpoint(&state, &parts.headers, self.permission, path.endpoint);
        let (key, endpoint) = match found {
            Ok(found) => found,
            Err(failure) => return Box::pin(ready(failure.into_response())),
        };
        let admission = self.route.map(|route| {
            let running = endpoint.running_workers();
            state.limiter().admit(key.owner, endpoint.no(), route, running)
        });
        let admission = match admission.transpose() {
            Ok(admission) => admission,
            Err(overrun) => return Box::pin(ready(overrun.into_response())),
        };
        let job = path.job.parse().ok();
        let answering =
            operation(Call { state, key, endpoint, job, uri: parts.uri, headers: parts.headers, body });
        Box::pin(answering.map(move |answered| {
            let response = answered.unwrap_or_else(ApiError::into_response);
            match admission {
                Some(admission) => admission.close(response),
                None => response,
            }
        }))
    }
}

/// A request that passed the gate.
pub(crate) struct Call {
    pub(crate) state: HttpState,
    pub(crate) endpoint: EndpointHandle,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    key: Arc<TrackedKey>,
    job: Option<JobId>,
    uri: Uri,
}

impl Call {
    /// The job of the path. A text that is no job id names no job.
    pub(crate) fn job(&self) -> Result<JobId, ApiError> {
        self.job.ok_or_else(ApiError::no_such_job)
    }

    /// What a job carries that this request submits.
    pub(crate) fn submitter(&self) -> Submitter {
        self.key.submitter()
    }

    /// The last part but one of the path, as it is.
    pub(crate) fn path_part_before_last(&self) -> &str {
        self.uri.path().rsplit('/').nth(1).unwrap_or_default()
    }

    /// The query parameters.
    pub(crate) fn query(&self) -> Result<Query, ApiError> {
        Query::of(&self.uri)
    }

    /// What is needed to wait for something. The head is let go of, and with it the connection's read buffer that it
    /// lies in: 8 KiB for everybody who waits.
    pub(crate) fn into_wait(self) -> (HttpState, EndpointHandle) {
        (self.state, self.endpoint)
    }

    /// What the key permits here, for an answer that goes on.
    pub(crate) fn standing(&self, operation: Permission) -> OngoingAccess {
        OngoingAccess::of(&self.key, operation, self.endpoint.id())
    }

    /// Asks for more permission than the gate did.
    pub(crate) fn require(&self, operation: Permission) -> Result<(), ApiError> {
        let now = auth::now_for(&self.key, &self.state);
        let permits = self.key.permits(operation, Some(&self.endpoint.id()), now);
        if permits { Ok(()) } else { Err(ApiError::unauthorized()) }
    }
}
