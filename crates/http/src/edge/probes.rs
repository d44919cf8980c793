//! Liveness and readiness for operators. The probes need no key; with one that may read everything, `/readyz` names the
//! files and folders of a failure. `/readyz?verbose` has one line for each check, and
//! names no stored resource.

use axum::extract::{RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};

use crate::HttpState;
use crate::gate::auth::{active_key, credential, reads_catalog};
use crate::readiness::{Readiness, public_fault};
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

async fn ready(State(state): State<HttpState>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let is_told = may_know(&state, &headers);
    if query.is_some_and(|query| query.split('&').any(|part| part.split('=').next() == Some("verbose"))) {
        return checks(&state, is_told).await;
    }
    let readiness = Readiness::of(&state).await;
    match if is_told { readiness.reason() } else { readiness.public_reason() } {
        Some(reason) => ApiError::unavailable("not_ready", reason).into_response(),
        None => with_status("ready"),
    }
}

/// Whether the request has a key that may read everything: only such a key reads names of files and folders.
fn may_know(state: &HttpState, headers: &HeaderMap) -> bool {
    let key = credential(headers).and_then(|text| active_key(state, text));
    key.is_some_and(|key| reads_catalog(state, &key))
}

/// The response with one line per check. Its status is that of the request without `verbose`: a server with a damaged
/// file still serves.
async fn checks(state: &HttpState, is_told: bool) -> Response {
    let (mut status, mut lines) = if state.engine().is_ready() {
        (StatusCode::OK, "ok endpoints: all are loaded\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "failed endpoints: they are still being loaded\n".to_owned())
    };
    match state.engine().store_fault().await.or_else(|| state.engine().space_shortage()) {
        None => lines.push_str("ok store: its last write succeeded\n"),
        Some(fault) => {
            status = StatusCode::SERVICE_UNAVAILABLE;
            let fault = if is_told { &fault } else { public_fault(&fault) };
            let line = format!("failed store: {}\n", fault.replace('\n', " "));
            lines.push_str(&line);
        }
    }
    if let Some(reason) =
        state.engine().draining_since().and_then(|since| Readiness::Draining(since).reason())
    {
        status = StatusCode::SERVICE_UNAVAILABLE;
        let line = format!("failed drain: {reason}\n");
        lines.push_str(&line);
    }
    if let Some(scrub) = state.scrub() {
        let found = scrub.snapshot();
        let verdict = if found.damaged == 0 { "ok" } else { "failed" };
        let (damaged, passes, bytes) = (found.damaged, found.passes, found.bytes);
        let read = format!("{bytes} bytes read since the start; passes over everything: {passes}");
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
