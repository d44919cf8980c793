//! Liveness and readiness for operators. The probes need no key. `/readyz?verbose` has one line for each check, and
//! names no stored resource.

use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use crate::HttpState;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

/// Marks a response with one line per check, which keeps its form also with an error's status.
#[derive(Clone, Copy)]
pub(super) struct Report;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

async fn alive() -> Response {
    with_status("ok")
}

async fn ready(State(state): State<HttpState>, RawQuery(query): RawQuery) -> Response {
    if query.is_some_and(|query| query.split('&').any(|part| part.split('=').next() == Some("verbose"))) {
        return checks(&state).await;
    }
    if !state.engine().is_ready() {
        return ApiError::unavailable("not_ready", "the server is still loading its endpoints")
            .into_response();
    }
    match state.engine().store_fault().await {
        Some(fault) => {
            ApiError::unavailable("not_ready", format!("changes cannot be stored: {fault}")).into_response()
        }
        None => with_status("ready"),
    }
}

/// The response with one line per check. Its status is that of the request without `verbose`: a server with a damaged
/// file still serves.
async fn checks(state: &HttpState) -> Response {
    let (mut status, mut lines) = if state.engine().is_ready() {
        (StatusCode::OK, "ok endpoints: all are loaded\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "failed endpoints: they are still being loaded\n".to_owned())
    };
    match state.engine().store_fault().await {
        None => lines.push_str("ok store: its last write succeeded\n"),
        Some(fault) => {
            status = StatusCode::SERVICE_UNAVAILABLE;
            let line = format!("failed store: {}\n", fault.replace('\n', " "));
            lines.push_str(&line);
        }
    }
    if let Some(scrub) = state.scrub() {
        let found = scrub.snapshot();
        let verdict = if found.damaged == 0 { "ok" } else { "failed" };
        let (damaged, passes, bytes) = (found.damaged, found.passes, found.bytes);
        let read = format!("{bytes} bytes read since the start, everything {passes} times");
        let counted = format!("{verdict} files: {damaged} damaged places, named in the log; {read}\n");
        lines.push_str(&counted);
    }
    (status, Extension(Report), [(CONTENT_TYPE, "text/plain; charset=utf-8")], lines).into_response()
}

/// The response `{"status":"<status>"}`.
fn with_status(status: &str) -> Response {
    let mut body = JsonBody::new();
    body.text("{\"status\":").string(status).text("}");
    body.into_response()
}
