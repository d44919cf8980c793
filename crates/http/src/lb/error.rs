//! The errors that the server answers in place of a worker. Each has its code in `X-Longshore-Error` too.

use std::borrow::Cow;

use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use longshore_engine::NotAdmitted;
use longshore_model::EndpointId;

use crate::gate::rate_limits::LimitExceeded;
use crate::wire::api_error::ApiError;

/// The header with the code of an error that no worker made.
pub(super) const ERROR: HeaderName = HeaderName::from_static("x-longshore-error");
/// How long clients should wait for a worker before they try again, in s.
const RETRY_AFTER_S: u64 = 5;

/// Why the server answers in place of a worker.
#[derive(Debug)]
pub(super) enum LbError {
    /// The key, the endpoint or the rate does not permit the request.
    Refused(Box<ApiError>),
    /// The endpoint has a queue.
    HasQueue(EndpointId),
    /// The method is `CONNECT`.
    NoProxy,
    /// No worker has taken the request.
    NotAdmitted(NotAdmitted),
    /// No worker accepted a connection.
    Unreachable,
    /// The client's body is malformed, or ended early.
    BadBody,
    /// The client sent no part of its body within the endpoint's `requestTimeoutMs`, and the worker has not answered.
    BodyTimedOut,
    /// The client sends its body more slowly than it may, and the worker has not answered.
    BodyTooSlow,
    /// The worker closed the connection before it had answered.
    Closed,
    /// The worker answered what is no HTTP/1.1 response, for this reason.
    BadAnswer(Cow<'static, str>),
    /// The head of the response did not come within the endpoint's `requestTimeoutMs`.
    TimedOut,
}

impl From<ApiError> for LbError {
    fn from(error: ApiError) -> Self {
        Self::Refused(Box::new(error))
    }
}

impl From<LimitExceeded> for LbError {
    fn from(exceeded: LimitExceeded) -> Self {
        ApiError::from(exceeded).into()
    }
}

impl LbError {
    /// The response to the client.
    pub(super) fn into_response(self) -> Response {
        response(self.into_api_error())
    }

    /// The error as the client gets it.
    pub(super) fn into_api_error(self) -> ApiError {
        match self {
            Self::Refused(error) => *error,
            Self::HasQueue(id) => ApiError::bad_request(
                "not_load_balancing",
                format!("this endpoint has a queue of jobs; its address is /v2/{id}/run"),
            ),
            Self::NoProxy => ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "no_proxy",
                "`CONNECT` asks for a tunnel to another server, and this server is no such proxy",
            ),
            Self::NotAdmitted(reason) => not_admitted(reason),
            Self::Unreachable => bad_gateway("upstream_connect", "no worker accepted a connection".into()),
            Self::BadBody => ApiError::bad_request(
                "bad_body",
                "the request's body is malformed, or ended before it was complete",
            ),
            Self::BodyTimedOut => ApiError::body_timeout(
                "no part of the request's body arrived within the endpoint's `requestTimeoutMs`",
            ),
            Self::BodyTooSlow => ApiError::body_timeout(
                "the request's body comes more slowly than 1 KiB/s, for longer than the endpoint's `requestTimeoutMs`, and the \
                 worker has not begun to answer: send the body faster, let the worker answer before the body ends, or raise \
                 `requestTimeoutMs`",
            ),
            Self::Closed => {
                bad_gateway("upstream_closed", "the worker closed the connection before it answered".into())
            }
            Self::BadAnswer(why) => bad_gateway(
                "upstream_protocol",
                format!("the worker's answer is no HTTP/1.1 response: {why}"),
            ),
            Self::TimedOut => ApiError::new(
                StatusCode::GATEWAY_TIMEOUT,
                "upstream_timeout",
                "the worker did not begin to answer within the endpoint's `requestTimeoutMs`",
            ),
        }
    }
}

/// The response with an error, whose code is in a header, too.
pub(super) fn response(error: ApiError) -> Response {
    let code = HeaderValue::from_static(error.code());
    let mut response = error.into_response();
    response.headers_mut().insert(ERROR, code);
    response
}

fn bad_gateway(code: &'static str, text: String) -> ApiError {
    ApiError::new(StatusCode::BAD_GATEWAY, code, text)
}

fn not_admitted(reason: NotAdmitted) -> ApiError {
    let (code, text) = match reason {
        NotAdmitted::QueueFull => {
            ("queue_full", "every worker is busy, and as many requests wait as `queueMax` permits")
        }
        NotAdmitted::TimedOut => {
            ("no_worker", "no worker was healthy and had room within the endpoint's `queueTimeoutMs`")
        }
        NotAdmitted::Paused => ("paused", "the endpoint is paused: its `workersMax` is 0"),
        NotAdmitted::Draining => ("draining", "the server drains and starts no worker"),
        NotAdmitted::Deleted => return ApiError::no_such_endpoint(),
        NotAdmitted::BodyTooLarge => {
            let text =
                "the body is over the endpoint's `bodyBytesMax`, and no worker has room for the request now";
            return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
                .retry_after(RETRY_AFTER_S);
        }
    };
    ApiError::unavailable(code, text).retry_after(RETRY_AFTER_S)
}
