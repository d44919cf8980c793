//! Responses to requests for which there is no handler.

use axum::extract::State;
use http::{HeaderMap, Uri};

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

/// The answer where no route is.
pub(crate) async fn unknown_route(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> ApiError {
    if is_guarded(&uri) && !auth::is_known_caller(&state, &headers) {
        return ApiError::unauthorized();
    }
    ApiError::no_such_route()
}

/// The answer where a route is, but not for this method.
pub(crate) async fn unknown_method(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> ApiError {
    if is_guarded(&uri) && !auth::is_known_caller(&state, &headers) {
        return ApiError::unauthorized();
    }
    ApiError::method_not_allowed()
}

/// Whether a stranger must not even learn that a path does not exist.
fn is_guarded(uri: &Uri) -> bool {
    let first = uri.path().split('/').nth(1);
    matches!(first, Some("v1" | "v2" | "sdk" | "graphql" | "openai" | "metrics"))
}
