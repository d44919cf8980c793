//! The management API, `/v1`: templates and endpoints.
//!
//! What a resource's fields are is data ([`fields`]): requests are checked against it, their members are laid
//! over the stored record ([`records`]), clients read the record without its secrets ([`views`]), and the API's
//! document is made from it too ([`schemas`]).

mod access;
mod base_url;
mod document;
mod endpoint_fields;
mod endpoints;
mod fields;
#[cfg(test)]
mod hostile;
mod nearest;
mod parameters;
mod records;
mod schemas;
mod template_fields;
mod templates;
mod views;

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::routing::{get, post};
use bytes::Bytes;
use longshore_model::limits::MANAGEMENT_BODY_BYTES_MAX;
use tokio::sync::oneshot;

use crate::errors::Failure;
use crate::{HttpState, body};

/// A JSON document, or why there is none.
type Answer = Result<axum::Json<serde_json::Value>, Failure>;

pub(crate) fn routes() -> Router<HttpState> {
    let template = get(templates::get).patch(templates::update).delete(templates::delete);
    let endpoint = get(endpoints::get).patch(endpoints::update).delete(endpoints::delete);
    Router::new()
        .route("/v1/openapi.json", get(document::document))
        .route("/v1/templates", get(templates::list).post(templates::create))
        .route("/v1/templates/{template}", template)
        .route("/v1/templates/{template}/update", post(templates::update))
        .route("/v1/endpoints", get(endpoints::list).post(endpoints::create))
        .route("/v1/endpoints/{endpoint}", endpoint)
        .route("/v1/endpoints/{endpoint}/update", post(endpoints::update))
        .route("/v1/endpoints/{endpoint}/worker-token", post(endpoints::worker_token))
}

/// The id in a path; empty where it is no text, which finds nothing: after the key was checked, not before.
struct PathId(String);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let id = Path::from_request_parts(parts, state).await;
        Ok(Self(id.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

/// Carries a change out to its end, even if the client hangs up in the middle of it.
async fn to_the_end<T: Send + 'static, C>(
    state: &HttpState,
    change: impl FnOnce(HttpState) -> C,
) -> Result<T, Failure>
where
    C: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let (reply, outcome) = oneshot::channel();
    let change = change(state.clone());
    state.engine().spawn(async move {
        // A client that hung up is told nothing.
        let _ = reply.send(change.await);
    });
    // The task is never aborted, so there is no outcome only if it panicked.
    outcome.await.unwrap_or_else(|_| Err(Failure::internal()))
}

async fn read_body(state: &HttpState, body: Body) -> Result<Bytes, Failure> {
    Ok(body::read(body, MANAGEMENT_BODY_BYTES_MAX, state.budget()).await?.bytes)
}
