//! `GET /metrics`: the metrics of the server, for Prometheus.
//!
//! Requests need a key that may read the catalog. A key that is limited to endpoints gets the metrics of these endpoints,
//! without those of the process. With the setting `metrics_public` every request gets all metrics, without a key. Labels
//! name endpoints and owners, never a job, a key or a payload.

mod balancing;
mod exposition;
mod families;
mod format;
mod jobs;
pub(crate) mod nodes;
mod owners;
pub(crate) mod page;
mod problems;
mod protobuf;
pub(crate) mod requests;
mod server;
mod workers;

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use longshore_model::Permission;

use self::format::Format;
use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(state): State<HttpState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = if state.metrics_public() {
        None
    } else {
        Some(auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?)
    };
    let format = Format::asked_for(&headers);
    let page = state.metrics_pages().of(format).page(|| families::render(state.clone(), format)).await;
    let page = page.ok_or_else(ApiError::internal)?;
    let text = match key {
        Some(key) if !key.permits(Permission::ReadCatalog, None, auth::now_for(&key, &state)) => {
            // The page for a limited key is a copy, which counts against the budget of responses.
            state.engine().answers().charge(page.about(key.endpoints_for(Permission::ReadCatalog)))?
        }
        _ => page.whole(),
    };
    Ok(([(CONTENT_TYPE, format.content_type()), (VARY, "accept")], text).into_response())
}

/// Counts a request when its response is known. A request whose client disconnects before that is not counted.
pub(crate) async fn count(State(state): State<HttpState>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let (method, began) = (request.method().clone(), Instant::now());
    let response = next.run(request).await;
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    state.requests().count(route, &method, response.status(), began.elapsed());
    response
}
