//! The worker protocol: how handlers written for the official worker SDK take jobs and report results.
//!
//! The path alone selects the operation. Query parameters are optional, headers other than the token are ignored, and
//! bodies are raw bytes whatever their content type.

mod characters;
mod chunks;
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
    let answered_for_good = Router::new()
        .route(TAKE.pattern(MOUNT), polled(TAKE.on_all()))
        .route(TAKE_BATCH.pattern(MOUNT), polled(TAKE_BATCH.on_all()))
        .route("/v2/{endpoint}/job-stop/{worker}", polled(get(routed(stop))))
        .route(DONE.pattern(MOUNT), DONE.on_all())
        .layer(from_fn(close));
    Router::new()
        .merge(answered_for_good)
        .route("/v2/{endpoint}/job-stream/{worker}/{job}", post(routed(stream)))
        .route(PING.pattern(MOUNT), PING.on_all())
}

/// Closes the connection after the response. A worker whose handler blocks does not notice that a proxy or a restarted
/// server has closed its idle connection: it posts its result there once, and the result is lost. Without an idle
/// connection the worker opens a new one.
///
/// A worker that watches its connections sends `Connection: keep-alive`, which the SDK never does; its connection stays
/// open.
async fn close(question: Request, next: Next) -> Response {
    let keeps = asks_to_keep(question.headers());
    closing_unless(keeps, next.run(question).await)
}

fn asks_to_keep(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"))
}

fn closing_unless(keeps: bool, mut answer: Response) -> Response {
    if !keeps {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// `GET job-take/{worker}`.
pub(crate) fn take(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, _body) = request.into_parts();
    let keeps = asks_to_keep(&head.headers);
    let answering = polls::take(state, path, &head);
    Box::pin(answering.map(move |answer| closing_unless(keeps, answer)))
}

/// `GET job-take-batch/{worker}`.
pub(crate) fn take_batch(state: &HttpState, path: RoutePath<'_>, request: Request) -> BoxResponse {
    let (head, _body) = request.into_parts();
    let keeps = asks_to_keep(&head.headers);
    let answering = polls::take_batch(state, path, &head);
    Box::pin(answering.map(move |answer| closing_unless(keeps, answer)))
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
    let answering = report::done(state, path, &head.headers, body);
    Box::pin(answering.map(move |answer| closing_unless(keeps, answer.into_response())))
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

/// A poll removes what it returns. `HEAD` would remove it too, and return nothing.
fn polled(question: MethodRouter<HttpState>) -> MethodRouter<HttpState> {
    question.head(only_get)
}

async fn only_get(state: State<HttpState>, uri: Uri, headers: HeaderMap) -> Response {
    let mut answer = fallback::unknown_method(state, uri, headers).await.into_response();
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    answer
}
