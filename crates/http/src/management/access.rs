//! Who may use the management API: `manage` for everything, `read` for looking.

use std::sync::Arc;

use http::HeaderMap;
use longshore_engine::{EndpointHandle, LiveKey};
use longshore_model::Operation;

use crate::errors::Failure;
use crate::{HttpState, keys};

/// Checks that a request may change the whole catalog.
pub(super) fn may_manage(state: &HttpState, headers: &HeaderMap) -> Result<Arc<LiveKey>, Failure> {
    keys::authorize(state, headers, Operation::Manage)
}

/// Checks that a request may change one endpoint, and finds it.
pub(super) fn may_manage_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<(Arc<LiveKey>, EndpointHandle), Failure> {
    keys::authorize_endpoint(state, headers, Operation::Manage, id_or_slug)
}

/// Checks that a request may look at the whole catalog.
pub(super) fn may_read(state: &HttpState, headers: &HeaderMap) -> Result<(), Failure> {
    keys::authorize(state, headers, Operation::Look).map(drop)
}

/// Checks that a request may look at one endpoint, and finds it. A key that may read some endpoints only may
/// look at those; one that may only hand in jobs may not.
pub(super) fn may_read_endpoint(
    state: &HttpState,
    headers: &HeaderMap,
    id_or_slug: &str,
) -> Result<(Arc<LiveKey>, EndpointHandle), Failure> {
    keys::authorize_endpoint(state, headers, Operation::Look, id_or_slug)
}
