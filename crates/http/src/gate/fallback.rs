//! Responses to requests for which there is no handler.

use axum::extract::State;
use http::{HeaderMap, Uri};

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

/// The response where no route exists: 404, or 401 without a valid key where paths are secret.
pub(crate) async fn unknown_route(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> ApiError {
    if is_guarded(&uri) && !auth::is_known_caller(&state, &headers) {
        return ApiError::unauthorized();
    }
    ApiError::no_such_route()
}

/// The response where a route exists, but not for this method: 405, or 401 without a valid key where paths are secret.
pub(crate) async fn unknown_method(State(state): State<HttpState>, uri: Uri, headers: HeaderMap) -> ApiError {
    if is_guarded(&uri) && !auth::is_known_caller(&state, &headers) {
        return ApiError::unauthorized();
    }
    ApiError::method_not_allowed()
}

/// Whether a client without a key must not learn that the path does not exist.
fn is_guarded(uri: &Uri) -> bool {
    let first = uri.path().split('/').nth(1);
    matches!(first, Some("v1" | "v2" | "sdk" | "graphql" | "openai" | "metrics"))
}
