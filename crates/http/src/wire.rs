//! What is read from requests and written in responses: bodies, errors, query parameters, and server-sent events.

pub(crate) mod api_error;
pub(crate) mod base_path;
pub(crate) mod body;
pub(crate) mod body_buffer;
pub(crate) mod did_you_mean;
pub(crate) mod frames;
pub(crate) mod guarded_page;
pub(crate) mod gunzip;
pub(crate) mod json_body;
pub(crate) mod limit_status;
pub(crate) mod query;
pub(crate) mod request_id;
pub(crate) mod rfc3339;
pub(crate) mod route_path;
pub(crate) mod sse;
pub(crate) mod submit_trace;
pub(crate) mod trusted_proxies;

use std::pin::Pin;

use axum::response::Response;
use http::HeaderName;

/// The header with which a client repeats a submit. A request with more than one is refused before it is routed.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The response that a handler is preparing.
pub(crate) type BoxResponse = Pin<Box<dyn Future<Output = Response> + Send>>;
