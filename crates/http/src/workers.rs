//! The worker protocol: how handlers written for the official worker SDK fetch jobs and bring results.
//!
//! Everything is told apart by its path alone. Query parameters are optional, headers besides the token mean
//! nothing, and bodies are raw bytes whatever their content type says.

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

/// The workers' one mount.
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

/// Ends the connection with its answer. A worker whose handler blocks does not see that an idle connection was
/// closed meanwhile, by a proxy or by a server that restarted: it posts its result there, once, and the result
/// is lost. With nothing idle it posts to a fresh connection.
///
/// A worker that watches its connections says so with `Connection: keep-alive`, which the SDK never sends, and
/// keeps them.
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

/// A question that takes what it answers. `HEAD` would take it too, and show nobody.
fn polled(question: MethodRouter<HttpState>) -> MethodRouter<HttpState> {
    question.head(only_get)
}

async fn only_get(state: State<HttpState>, uri: Uri, headers: HeaderMap) -> Response {
    let mut answer = fallback::unknown_method(state, uri, headers).await.into_response();
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    answer
}
