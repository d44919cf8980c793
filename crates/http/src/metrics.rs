//! `GET /metrics`: what the server does, in numbers, for Prometheus.
//!
//! For keys that may look: one that is limited to endpoints sees the numbers of these, and none of the whole process.
//! The setting `metrics_public` shows everything to everybody. The numbers name endpoints, and no job, key or payload.

mod exposition;
mod families;
mod owners;
mod page;
mod process;
mod requests;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use longshore_model::Permission;

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

pub(crate) use self::page::PageCache;
pub(crate) use self::requests::{RequestCounts, count};

pub(crate) fn routes() -> Router<HttpState> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(State(state): State<HttpState>, headers: HeaderMap) -> Result<Response, ApiError> {
    let key = if state.metrics_public() {
        None
    } else {
        Some(auth::authorize_somewhere(&state, &headers, Permission::ReadCatalog)?)
    };
    let page = state.metrics_page().page(|| families::render(state.clone())).await;
    let page = page.ok_or_else(ApiError::internal)?;
    let text = match key {
        Some(key) if !key.permits(Permission::ReadCatalog, None, auth::now_for(&key, &state)) => {
            // A copy for this key alone.
            state.engine().answers().charge(page.about(key.endpoints_for(Permission::ReadCatalog)))?
        }
        _ => page.whole(),
    };
    Ok(([(CONTENT_TYPE, exposition::CONTENT_TYPE)], text).into_response())
}
