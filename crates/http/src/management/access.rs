//! Which keys may use the management API: the scope `manage` permits changes, `read` permits every GET.

use http::HeaderMap;
use longshore_engine::EndpointHandle;
use longshore_model::Permission;

use crate::HttpState;
use crate::gate::auth;
use crate::gate::caller::Caller;
use crate::wire::api_error::ApiError;

/// Checks that a request may change the whole catalog.
pub(super) fn may_manage(state: &HttpState, headers: &HeaderMap) -> Result<Caller, ApiError> {
    auth::authorize(state, headers, Permission::WriteCatalog)
}

/// Checks that a request may change one endpoint, and returns the key and the endpoint.
pub(super) fn may_manage_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<(Caller, EndpointHandle), ApiError> {
    auth::authorize_endpoint(state, headers, Permission::WriteCatalog, id_or_slug)
}

/// Checks that a request may read the whole catalog.
pub(super) fn may_read(state: &HttpState, headers: &HeaderMap) -> Result<(), ApiError> {
    auth::authorize(state, headers, Permission::ReadCatalog).map(drop)
}

/// Whether the key may know the computers that workers run on, and the addresses of those that run elsewhere.
pub(super) fn may_see_machines(state: &HttpState, key: &Caller) -> bool {
    key.permits(Permission::ReadCatalog, None, auth::now_for(key, state))
}

/// Checks that a request may read one endpoint, and returns the key and the endpoint. A key that is limited to endpoints
/// may read these; a key with the scope `jobs` alone may read none.
pub(super) fn may_read_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<(Caller, EndpointHandle), ApiError> {
    auth::authorize_endpoint(state, headers, Permission::ReadCatalog, id_or_slug)
}
