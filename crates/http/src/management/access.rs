//! Who may use the management API: `manage` for everything, `read` for looking.

use std::sync::Arc;

use http::HeaderMap;
use longshore_engine::EndpointHandle;
use longshore_model::{ApiKey, KeyScope, Operation};

use crate::errors::Failure;
use crate::{HttpState, keys};

/// Checks that a request may change the catalog.
pub(super) fn may_manage(state: &HttpState, headers: &HeaderMap) -> Result<Arc<ApiKey>, Failure> {
    keys::authorize(state, headers, Operation::Manage)
}

/// Checks that a request may look at the whole catalog.
pub(super) fn may_read(state: &HttpState, headers: &HeaderMap) -> Result<(), Failure> {
    may_manage(state, headers).or_else(|_| keys::authorize(state, headers, Operation::Read)).map(drop)
}

/// Checks that a request may look at one endpoint, and finds it. A key that may read some endpoints only may
/// look at those; one that may only hand in jobs may not.
pub(super) fn may_read_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<EndpointHandle, Failure> {
    if may_read(state, headers).is_ok() {
        return state.engine().endpoint(id_or_slug).ok_or_else(Failure::no_such_endpoint);
    }
    let found = keys::authorize_endpoint(state, headers, Operation::Read, id_or_slug);
    let (key, endpoint) = found.map_err(|_| Failure::unauthorized())?;
    let reads = key.scopes.iter().any(|scope| matches!(scope, KeyScope::Read { .. }));
    if reads { Ok(endpoint) } else { Err(Failure::unauthorized()) }
}
