//! Liveness and readiness, for whoever runs the server. They need no key and tell nothing else.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::HttpState;
use crate::errors::Failure;
use crate::json_body::JsonBody;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/healthz", get(alive)).route("/readyz", get(ready))
}

async fn alive() -> Response {
    said("ok")
}

async fn ready(State(state): State<HttpState>) -> Response {
    if state.engine().is_ready() {
        said("ready")
    } else {
        Failure::unavailable("not_ready", "the server is still loading its endpoints").into_response()
    }
}

fn said(status: &str) -> Response {
    let mut body = JsonBody::new();
    body.text("{\"status\":").string(status).text("}");
    body.into_response()
}
