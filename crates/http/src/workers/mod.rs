//! The worker protocol: how handlers written for the official worker SDK fetch jobs and bring results.
//!
//! Everything is told apart by its path alone. Query parameters are optional, headers besides the token mean
//! nothing, and bodies are raw bytes whatever their content type says.

mod address;
mod chunks;
#[cfg(test)]
mod hostile;
mod job_object;
mod lenient;
mod pings;
mod polls;
mod report;
mod reports;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{ALLOW, CONNECTION};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use futures_util::FutureExt as _;

pub(crate) use self::address::WorkerPath;
pub(crate) use self::lenient::plain_text;
use crate::edge::Answering;
use crate::{HttpState, edge};

pub(crate) fn routes() -> Router<HttpState> {
    let answered_for_good = Router::new()
        .route("/v2/{endpoint}/job-take/{worker}", polled(get(polls::take)))
        .route("/v2/{endpoint}/job-take-batch/{worker}", polled(get(polls::take_batch)))
        .route("/v2/{endpoint}/job-stop/{worker}", polled(get(polls::stop)))
        .route("/v2/{endpoint}/job-done/{worker}/{job}", post(reports::done))
        .layer(from_fn(close));
    Router::new()
        .merge(answered_for_good)
        .route("/v2/{endpoint}/job-stream/{worker}/{job}", post(reports::stream))
        .route("/v2/{endpoint}/ping/{worker}", get(pings::ping))
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
pub(crate) fn take(state: HttpState, path: WorkerPath, request: Request) -> Answering {
    let (parts, _) = request.into_parts();
    let keeps = asks_to_keep(&parts.headers);
    let answering = polls::take(State(state), path, parts.uri, parts.headers);
    Box::pin(answering.map(move |answer| closing_unless(keeps, answer)))
}

/// `GET job-take-batch/{worker}`.
pub(crate) fn take_batch(state: HttpState, path: WorkerPath, request: Request) -> Answering {
    let (parts, _) = request.into_parts();
    let keeps = asks_to_keep(&parts.headers);
    let answering = polls::take_batch(State(state), path, parts.uri, parts.headers);
    Box::pin(answering.map(move |answer| closing_unless(keeps, answer)))
}

/// `POST job-done/{worker}/{job}`.
pub(crate) fn done(state: HttpState, path: WorkerPath, request: Request) -> Answering {
    let (parts, body) = request.into_parts();
    Box::pin(async move {
        let keeps = asks_to_keep(&parts.headers);
        closing_unless(keeps, reports::done(State(state), path, parts.headers, body).await.into_response())
    })
}

/// `GET ping/{worker}`.
pub(crate) fn ping(state: HttpState, path: WorkerPath, request: Request) -> Answering {
    let (parts, _) = request.into_parts();
    Box::pin(async move { pings::ping(State(state), path, parts.uri, parts.headers).await.into_response() })
}

/// A question that takes what it answers. `HEAD` would take it too, and show nobody.
fn polled(question: MethodRouter<HttpState>) -> MethodRouter<HttpState> {
    question.head(only_get)
}

async fn only_get(state: State<HttpState>, uri: Uri, headers: HeaderMap) -> Response {
    let mut answer = edge::unknown_method(state, uri, headers).await.into_response();
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    answer
}
