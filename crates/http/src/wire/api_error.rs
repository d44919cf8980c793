//! The one shape of errors, and the table from the engine's errors to statuses and codes.

use std::borrow::Cow;

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use longshore_engine::{CatalogError, EndpointError, Refusal};
use longshore_envelope::EnvelopeError;
use longshore_model::EndpointId;
use longshore_planted::{Bug, planted};

use crate::wire::json_body::JsonBody;
use crate::wire::limit_status::LimitStatus;

/// An unsuccessful response: `{"error": …, "code": …}` and no other key. Some clients ignore the HTTP status and would
/// take an object with an `id` or `status` for a job.
///
/// The text never repeats a value of the request that could be a secret.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    text: Cow<'static, str>,
    retry_after_s: Option<u64>,
    limit_status: Option<Box<LimitStatus>>,
}

impl ApiError {
    /// An error with this status, code (`snake_case`) and text.
    pub(crate) fn new(status: StatusCode, code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, code, text: text.into(), retry_after_s: None, limit_status: None }
    }

    /// 400: the request is invalid.
    pub(crate) fn bad_request(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, text)
    }

    /// 401: no key, or a key that does not permit the request. The text is the same in all cases.
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

    /// 400: the endpoint forwards requests and has no jobs.
    pub(crate) fn is_load_balancing(id: &EndpointId) -> Self {
        let text = format!("this is a load-balancing endpoint; its address is /lb/{id}/");
        Self::bad_request("load_balancing", text)
    }

    pub(crate) fn no_such_job() -> Self {
        Self::new(StatusCode::NOT_FOUND, "job_not_found", "the job does not exist or has expired")
    }

    pub(crate) fn no_such_webhook() -> Self {
        let text = "no webhook has this id; `GET …/webhooks` lists those of an endpoint";
        Self::new(StatusCode::NOT_FOUND, "webhook_not_found", text)
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

    /// 412: the resource has changed since the client read it.
    pub(crate) fn changed_meanwhile() -> Self {
        Self::new(
            StatusCode::PRECONDITION_FAILED,
            "precondition_failed",
            "the resource does not have the `ETag` that `If-Match` names; read it again, and nothing was changed",
        )
    }

    pub(crate) fn body_too_large(bytes_max: usize) -> Self {
        let text = format!("the body is over {bytes_max} bytes; hand large data over by URL");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
    }

    /// 415: the body has an unsupported encoding.
    pub(crate) fn unsupported_encoding(text: String) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_encoding", text)
    }

    /// 408: the client did not send its body in time.
    pub(crate) fn body_timeout(text: &'static str) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", text)
    }

    /// 503: the server cannot serve the request now; the client may retry after 1 s.
    pub(crate) fn unavailable(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, text).retry_after(1)
    }

    /// 500: a defect of the server; the log has the cause.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the server failed at this request")
    }

    /// Adds `Retry-After`, in s.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Adds the state of the limit that the client exceeded.
    pub(crate) fn limit_status(mut self, limit_status: LimitStatus) -> Self {
        self.limit_status = Some(Box::new(limit_status));
        self
    }

    /// The HTTP status with which the error is answered.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether the body has an unsupported `Content-Encoding`, or is not the gzip that it says.
    pub(crate) fn is_about_encoding(&self) -> bool {
        matches!(self.code, "unsupported_encoding" | "bad_gzip")
    }

    /// Writes the members of the error's JSON object.
    pub(crate) fn write_members(&self, body: &mut JsonBody) {
        body.text("\"error\":").string(&self.text).text(",\"code\":").string(self.code);
    }

    /// The text for people.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The code for programs, `snake_case`.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }
}

impl From<EndpointError> for ApiError {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Refused(refusal) => refusal.into(),
            EndpointError::Deleted => Self::no_such_endpoint(),
            EndpointError::Unavailable(reason) | EndpointError::CommitFailed(reason) => {
                tracing::warn!(%reason, "endpoint change not stored");
                Self::unavailable("unavailable", "the server cannot store the change; retry after 1 s")
            }
            EndpointError::Unreadable(reason) if planted(Bug::ReadErrorCalledDamage) => {
                EndpointError::Damaged(reason).into()
            }
            // The engine has logged which file it is.
            EndpointError::Unreadable(_) => Self::unavailable(
                "unreadable",
                "the stored job cannot be read from the server's disk; retry after 1 s",
            ),
            EndpointError::NoRoom => {
                Self::unavailable("overloaded", "too many response bytes in flight; retry after 1 s")
            }
            EndpointError::NoSpace => Self::unavailable(
                "disk_full",
                "the server's disk is full: it accepts no job until there is space",
            )
            .retry_after(5),
            EndpointError::Overloaded => {
                Self::unavailable("overloaded", "too many request bytes in flight; retry after 1 s")
            }
            EndpointError::Damaged(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "damaged",
                "the stored job is damaged on the server's disk; the server's log names the file",
            ),
        }
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NoSuchJob => Self::no_such_job(),
            Refusal::NotRetryable => {
                Self::bad_request("job_not_retryable", "only a FAILED or TIMED_OUT job can be retried")
            }
            Refusal::WebhookNotRedeliverable => Self::bad_request(
                "webhook_not_repeatable",
                "this webhook cannot be delivered again: the job has none, or has been retried since",
            ),
            Refusal::IdempotencyKeyReused => Self::new(
                StatusCode::CONFLICT,
                "idempotency_key_reused",
                "this `Idempotency-Key` came before with another body; use a new key for a new job",
            ),
            Refusal::QueueFull => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "queue_full",
                "the endpoint's queue is full; retry after 5 s",
            )
            .retry_after(5),
        }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::NotFound => Self::new(StatusCode::NOT_FOUND, "not_found", "no such thing"),
            CatalogError::Conflict(text) => Self::bad_request("conflict", text),
            CatalogError::Changed => Self::changed_meanwhile(),
            CatalogError::Unavailable(reason) => {
                tracing::warn!(%reason, "catalog change failed");
                Self::unavailable(
                    "unavailable",
                    "the server cannot make what this needs at the moment; its log says why",
                )
            }
            CatalogError::Store(reason) => {
                tracing::warn!(%reason, "catalog change not stored");
                Self::unavailable("unavailable", "the server cannot store the change; retry after 1 s")
            }
        }
    }
}

/// The text and code of an error, kept beside its response for routes whose errors have another shape.
#[derive(Clone, Debug)]
pub(crate) struct ErrorText {
    pub(crate) code: &'static str,
    pub(crate) text: Cow<'static, str>,
}

impl From<&ApiError> for ErrorText {
    fn from(failure: &ApiError) -> Self {
        Self { code: failure.code, text: failure.text.clone() }
    }
}

impl From<EnvelopeError> for ApiError {
    fn from(error: EnvelopeError) -> Self {
        Self::bad_request(error.code(), error.into_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let text = ErrorText::from(&self);
        let mut body = JsonBody::new();
        body.text("{");
        self.write_members(&mut body);
        body.text("}");
        let mut response = body.into_response();
        *response.status_mut() = self.status;
        response.extensions_mut().insert(text);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(limit_status) = self.limit_status {
            limit_status.write(headers);
        }
        if self.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, identity"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    async fn shown(failure: impl Into<ApiError>) -> (u16, Option<String>, serde_json::Value) {
        let response = failure.into().into_response();
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let retry_after = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, retry_after, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn every_failure_has_its_status_code_and_shape() {
        let unavailable = || EndpointError::Unavailable("no space left on /secret/path".to_owned());
        let refused = EndpointError::Refused;
        for (failure, status, code, retry_after) in [
            (ApiError::bad_request("bad_json", "x"), 400, "bad_json", None),
            (refused(Refusal::NotRetryable).into(), 400, "job_not_retryable", None),
            (refused(Refusal::WebhookNotRedeliverable).into(), 400, "webhook_not_repeatable", None),
            (CatalogError::Conflict("x".to_owned()).into(), 400, "conflict", None),
            (EnvelopeError::nested_too_deep(9).into(), 400, "nested_too_deep", None),
            (ApiError::unauthorized(), 401, "unauthorized", None),
            (refused(Refusal::NoSuchJob).into(), 404, "job_not_found", None),
            (EndpointError::Deleted.into(), 404, "endpoint_not_found", None),
            (CatalogError::NotFound.into(), 404, "not_found", None),
            (CatalogError::Changed.into(), 412, "precondition_failed", None),
            (CatalogError::Unavailable("/secret".to_owned()).into(), 503, "unavailable", Some("1")),
            (ApiError::no_such_route(), 404, "route_not_found", None),
            (ApiError::method_not_allowed(), 405, "method_not_allowed", None),
            (refused(Refusal::IdempotencyKeyReused).into(), 409, "idempotency_key_reused", None),
            (ApiError::body_too_large(10), 413, "body_too_large", None),
            (ApiError::unsupported_encoding("x".to_owned()), 415, "unsupported_encoding", None),
            (refused(Refusal::QueueFull).into(), 429, "queue_full", Some("5")),
            (ApiError::internal(), 500, "internal", None),
            (unavailable().into(), 503, "unavailable", Some("1")),
            (EndpointError::Unreadable("/secret".to_owned()).into(), 503, "unreadable", Some("1")),
            (EndpointError::NoRoom.into(), 503, "overloaded", Some("1")),
            (EndpointError::Overloaded.into(), 503, "overloaded", Some("1")),
            (EndpointError::Damaged("/secret".to_owned()).into(), 500, "damaged", None),
        ] {
            let (shown_status, shown_retry, body) = shown(failure).await;
            assert_eq!((shown_status, body["code"].as_str()), (status, Some(code)));
            assert_eq!(shown_retry.as_deref(), retry_after, "{code}");
            let keys: Vec<_> = body.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["code", "error"]);
            let text = body["error"].as_str().unwrap();
            assert!(!text.is_empty() && !text.ends_with('.') && !text.contains("/secret"), "{text}");
        }
    }

    #[test]
    fn a_refused_key_says_how_to_send_one() {
        let response = ApiError::unauthorized().into_response();
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
    }
}
