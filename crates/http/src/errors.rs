//! The one shape of an error, and the one table from domain words to statuses.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use longshore_engine::{AskError, CatalogError, Refusal};

/// A request that is not done: `{"error": …, "code": …}` and no other key, because some clients ignore the
/// status and would take an `id` or `status` in it for a job.
///
/// The text never repeats a value of the request that could be a secret.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    code: &'static str,
    text: Cow<'static, str>,
    retry_after_s: Option<u64>,
}

impl Failure {
    /// A failure with this status, code (`snake_case`) and sentence.
    pub(crate) fn new(status: StatusCode, code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, text: text.into(), retry_after_s: None }
    }

    /// The request itself is wrong.
    pub(crate) fn bad_request(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, text)
    }

    /// No key, or one that does not permit this. Says the same for all of them.
    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "the API key is missing, unknown, expired, disabled or does not permit this; send it as `Authorization: Bearer <key>`",
        )
    }

    pub(crate) fn no_such_endpoint() -> Self {
        Self::new(StatusCode::NOT_FOUND, "endpoint_not_found", "no endpoint has this id or slug")
    }

    pub(crate) fn no_such_job() -> Self {
        Self::new(StatusCode::NOT_FOUND, "job_not_found", "the job does not exist or has expired")
    }

    pub(crate) fn no_such_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "route_not_found", "no such path; see the manual for the routes")
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path does not take this method; the `Allow` header lists those it takes",
        )
    }

    pub(crate) fn body_too_large(bytes_max: usize) -> Self {
        let text = format!("the body is over {bytes_max} bytes; hand large data over by URL");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
    }

    /// The server cannot take this now.
    pub(crate) fn unavailable(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, text).retry_after(1)
    }

    /// A defect of ours; the log says more.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed at this request")
    }

    /// The client should wait so many seconds before it asks again.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The code in the response.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Refused(refusal) => refusal.into(),
            AskError::Gone => Self::no_such_endpoint(),
            AskError::Unavailable(reason) => {
                tracing::warn!(%reason, "an endpoint could not keep a change");
                Self::unavailable("unavailable", "the server cannot keep the change at the moment; ask again")
            }
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoSuchJob => Self::no_such_job(),
            Refusal::NotRetryable => {
                Self::bad_request("job_not_retryable", "only a FAILED or TIMED_OUT job can be retried")
            }
            Refusal::KeyReused => Self::new(
                StatusCode::CONFLICT,
                "idempotency_key_reused",
                "this `Idempotency-Key` came before with another body; use a new key for a new job",
            ),
            Refusal::Full => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "queue_full",
                "the endpoint's queue holds as many jobs as it may; submit again later",
            )
            .retry_after(5),
        }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::NotFound => Self::new(StatusCode::NOT_FOUND, "not_found", "no such thing"),
            CatalogError::Conflict(text) => Self::bad_request("conflict", text),
            CatalogError::Store(reason) => {
                tracing::warn!(%reason, "the catalog could not keep a change");
                Self::unavailable("unavailable", "the server cannot keep the change at the moment; ask again")
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.text, "code": self.code }).to_string();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
