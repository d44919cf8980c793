//! Who may use the management API: `manage` for everything, `read` for looking.

use std::sync::Arc;

use http::HeaderMap;
use longshore_engine::{EndpointHandle, TrackedKey};
use longshore_model::Permission;

use crate::HttpState;
use crate::gate::auth;
use crate::wire::api_error::ApiError;

/// Checks that a request may change the whole catalog.
pub(super) fn may_manage(state: &HttpState, headers: &HeaderMap) -> Result<Arc<TrackedKey>, ApiError> {
    auth::authorize(state, headers, Permission::WriteCatalog)
}

/// Checks that a request may change one endpoint, and finds it.
pub(super) fn may_manage_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<(Arc<TrackedKey>, EndpointHandle), ApiError> {
    auth::authorize_endpoint(state, headers, Permission::WriteCatalog, id_or_slug)
}

/// Checks that a request may look at the whole catalog.
pub(super) fn may_read(state: &HttpState, headers: &HeaderMap) -> Result<(), ApiError> {
    auth::authorize(state, headers, Permission::ReadCatalog).map(drop)
}

/// Checks that a request may look at one endpoint, and finds it. A key that may read some endpoints only may
/// look at those; one that may only hand in jobs may not.
pub(super) fn may_read_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<(Arc<TrackedKey>, EndpointHandle), ApiError> {
    auth::authorize_endpoint(state, headers, Permission::ReadCatalog, id_or_slug)
}
