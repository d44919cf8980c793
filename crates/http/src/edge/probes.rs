//! Liveness and readiness for operators. The probes need no key. `/readyz?verbose` has one line for each check, and
//! names no stored resource.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::HttpState;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

async fn alive() -> Response {
    with_status("ok")
}

async fn ready(State(state): State<HttpState>, RawQuery(query): RawQuery) -> Response {
    if query.is_some_and(|query| query.split('&').any(|part| part.split('=').next() == Some("verbose"))) {
        return checks(&state);
    }
    if state.engine().is_ready() {
        with_status("ready")
    } else {
        ApiError::unavailable("not_ready", "the server is still loading its endpoints").into_response()
    }
}

/// The response with one line per check. Its status is that of the request without `verbose`: a server with a damaged
/// file still serves.
fn checks(state: &HttpState) -> Response {
    let (status, mut lines) = if state.engine().is_ready() {
        (StatusCode::OK, "ok endpoints: all are loaded\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "failed endpoints: they are still being loaded\n".to_owned())
    };
    if let Some(scrub) = state.scrub() {
        let found = scrub.snapshot();
        let verdict = if found.damaged == 0 { "ok" } else { "failed" };
        let (damaged, passes, bytes) = (found.damaged, found.passes, found.bytes);
        let read = format!("{bytes} bytes read since the start, everything {passes} times");
        let counted = format!("{verdict} files: {damaged} damaged places, named in the log; {read}\n");
        lines.push_str(&counted);
    }
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], lines).into_response()
}

/// The response `{"status":"<status>"}`.
fn with_status(status: &str) -> Response {
    let mut body = JsonBody::new();
    body.text("{\"status\":").string(status).text("}");
    body.into_response()
}
