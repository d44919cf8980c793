//! The worker protocol: how handlers written for the official worker SDK take jobs and report results.
//!
//! The path alone selects the operation. Query parameters are optional, headers other than the token are ignored, and
//! bodies are raw bytes with any content type.

mod characters;
mod chunks;
mod code;
pub(crate) mod fast_routes;
#[cfg(test)]
mod hostile;
mod job_object;
mod outline;
mod path;
mod pieces;
mod ping;
mod polls;
mod python_json;
mod report;
mod report_body;
mod scan;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONNECTION};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::FutureExt as _;

#[cfg(test)]
pub(crate) use self::chunks::split;
pub(crate) use self::chunks::within;
use self::fast_routes::{DONE, PING, TAKE, TAKE_BATCH};
pub(crate) use self::python_json::{plain_text, read_json};
use crate::HttpState;
use crate::fast_route::routed;
use crate::gate::fallback;
use crate::wire::BoxResponse;
use crate::wire::route_path::RoutePath;

/// The mount of the worker protocol.
const MOUNT: &str = "/v2/";

pub(crate) fn routes() -> Router<HttpState> {
    let closing_routes = Router::new()
        .route(TAKE.pattern(MOUNT), polled(TAKE.on_all()))
        .route(TAKE_BATCH.pattern(MOUNT), polled(TAKE_BATCH.on_all()))
        .route("/v2/{endpoint}/job-stop/{worker}", polled(get(routed(stop))))
        .route(DONE.pattern(MOUNT), DONE.on_all())
        .layer(from_fn(close));
    Router::new()
        .merge(closing_routes)
        .route("/v2/{endpoint}/job-stream/{worker}/{job}", post(routed(stream)))
        .route("/v2/{endpoint}/code/{hash}", get(code::archive))
        .route(PING.pattern(MOUNT), PING.on_all())
}

/// Closes the connection after the response. A worker whose handler blocks does not notice that a proxy or a restarted
/// server has closed its idle connection: it posts its result there once, and the result is lost. Without an idle
/// connection the worker opens a new one.
///
/// A worker that watches its connections sends `Connection: keep-alive`, which the SDK never does; its connection stays
/// open.
async fn close(request: Request, next: Next) -> Response {
    let keeps = asks_to_keep(request.headers());
    closing_unless(keeps, next.run(request).await)
}

/// Whether a worker asks to keep its connection.
pub(crate) fn asks_to_keep(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}

/// The response with `Connection: close`, unless the worker `keeps` its connection.
pub(crate) fn closing_unless(keeps: bool, mut response: Response) -> Response {
    if !keeps {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// `GET job-take/{worker}`.
pub(crate) fn take(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, _body) = request.into_parts();
    let keeps = asks_to_keep(&head.headers);
    let response_future = polls::take(state, path, &head);
    Box::pin(response_future.map(move |response| closing_unless(keeps, response)))
}

/// `GET job-take-batch/{worker}`.
pub(crate) fn take_batch(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, _body) = request.into_parts();
    let keeps = asks_to_keep(&head.headers);
    let response_future = polls::take_batch(state, path, &head);
    Box::pin(response_future.map(move |response| closing_unless(keeps, response)))
}

/// `GET job-stop/{worker}`.
fn stop(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, _body) = request.into_parts();
    Box::pin(polls::stop(state, path, &head))
}

/// `POST job-done/{worker}/{job}`.
pub(crate) fn done(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, body) = request.into_parts();
    let keeps = asks_to_keep(&head.headers);
    let response_future = report::done(state, path, &head.headers, body);
    Box::pin(response_future.map(move |response| closing_unless(keeps, response.into_response())))
}

/// `POST job-stream/{worker}/{job}`.
fn stream(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, body) = request.into_parts();
    Box::pin(report::stream(state, path, &head.headers, body).map(IntoResponse::into_response))
}

/// `GET ping/{worker}`.
pub(crate) fn ping(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, _body) = request.into_parts();
    Box::pin(ping::ping(state, path, &head).map(IntoResponse::into_response))
}

/// Rejects `HEAD` for a poll: axum would handle it as a GET without a body, and the poll's jobs would be lost.
fn polled(route: MethodRouter<HttpState>) -> MethodRouter<HttpState> {
    route.head(only_get)
}

async fn only_get(state: State<HttpState>, uri: Uri, headers: HeaderMap) -> Response {
    let mut response = fallback::unknown_method(state, uri, headers).await.into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    response
}
