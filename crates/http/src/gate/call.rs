//! The gate of every job operation. It checks the key, finds the endpoint and counts the rate, in this order, before
//! the body is read.

use std::future::ready;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use http::{HeaderMap, Uri};
use longshore_engine::EndpointHandle;
use longshore_history::LimitedOperation;
use longshore_model::{EndpointId, JobId, Permission, Submitter};

use crate::HttpState;
use crate::audit::note_key;
use crate::gate::auth;
use crate::gate::auth::OngoingAccess;
use crate::gate::caller::Caller;
use crate::wire::BoxResponse;
use crate::wire::api_error::ApiError;
use crate::wire::query::Query;
use crate::wire::route_path::RoutePath;

/// The permission and the rate limit that a request needs to reach an operation.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    permission: Permission,
    operation: Option<LimitedOperation>,
    /// Whether the operation has a meaning for a load-balancing endpoint, which has no jobs.
    is_for_all_types: bool,
}

impl Gate {
    /// A gate with a permission and a rate limit.
    pub(crate) const fn limited(permission: Permission, operation: LimitedOperation) -> Self {
        Self { permission, operation: Some(operation), is_for_all_types: false }
    }

    /// The same gate for an operation of endpoints of every type.
    pub(crate) const fn for_all_types(self) -> Self {
        Self { is_for_all_types: true, ..self }
    }

    /// A gate with a permission and no rate limit.
    pub(crate) const fn free(permission: Permission) -> Self {
        Self { permission, operation: None, is_for_all_types: true }
    }

    /// Runs `operation` for a request that may pass, or returns the refusal.
    ///
    /// The gate decides before it returns a future, so that the future is hardly larger than the operation's own. A
    /// nested future is copied with each one around it, at 1 200 instructions for a submit. An async block that awaits
    /// its argument reserves the argument's size twice: 3 KB per waiting request.
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
        let is_of_jobs = !self.is_for_all_types && self.operation.is_some_and(LimitedOperation::is_of_jobs);
        if is_of_jobs && endpoint.balancer().is_some() {
            return Box::pin(ready(ApiError::is_load_balancing(&endpoint.id()).into_response()));
        }
        let permit = self.operation.map(|limited| key.admit(&state, &endpoint, limited));
        let permit = match permit.transpose() {
            Ok(permit) => permit,
            Err(exceeded) => return Box::pin(ready(exceeded.into_response())),
        };
        let job = path.job.parse().ok();
        let answering =
            operation(Call { state, key, endpoint, job, uri: parts.uri, headers: parts.headers, body });
        Box::pin(answering.map(move |answered| {
            let response = answered.unwrap_or_else(ApiError::into_response);
            match permit {
                Some(permit) => permit.close(response),
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
    key: Caller,
    job: Option<JobId>,
    uri: Uri,
}

impl Call {
    /// The job of the path.
    ///
    /// # Errors
    ///
    /// `job_not_found` if the text is no job id.
    pub(crate) fn job(&self) -> Result<JobId, ApiError> {
        self.job.ok_or_else(ApiError::no_such_job)
    }

    /// The owner and key to store with a job that this request submits.
    pub(crate) fn submitter(&self) -> Submitter {
        self.key.submitter()
    }

    /// The last segment of the path, not decoded.
    pub(crate) fn last_path_part(&self) -> &str {
        self.uri.path().rsplit('/').next().unwrap_or_default()
    }

    /// The last segment but one of the path, not decoded.
    pub(crate) fn path_part_before_last(&self) -> &str {
        self.uri.path().rsplit('/').nth(1).unwrap_or_default()
    }

    /// Notes the key for the audit log, for a change of many jobs.
    pub(crate) fn note_key(&self) {
        note_key(&self.key);
    }

    /// The query parameters.
    ///
    /// # Errors
    ///
    /// `bad_query` if the query string cannot be decoded.
    pub(crate) fn query(&self) -> Result<Query, ApiError> {
        Query::of(&self.uri)
    }

    /// Reduces the call to what a wait needs. The head is dropped, and with it the connection's read buffer of 8 KiB
    /// that it points into.
    pub(crate) fn into_wait(self) -> (HttpState, EndpointHandle) {
        (self.state, self.endpoint)
    }

    /// The key's permission here, to be checked again during a long response.
    pub(crate) fn ongoing_access(&self, permission: Permission) -> OngoingAccess {
        OngoingAccess::of(&self.key, permission, self.endpoint.id())
    }

    /// Returns whether the key has a permission for an endpoint, which may be another one than that of the path.
    pub(crate) fn permits(&self) -> impl Fn(Permission, &EndpointId) -> bool + Send + Sync + use<> {
        let (key, now) = (self.key.clone(), auth::now_for(&self.key, &self.state));
        move |permission, endpoint| key.permits(permission, Some(endpoint), now)
    }

    /// Checks a further permission of the key.
    pub(crate) fn require(&self, permission: Permission) -> Result<(), ApiError> {
        if self.permits()(permission, &self.endpoint.id()) { Ok(()) } else { Err(ApiError::unauthorized()) }
    }
}
