//! Who may send requests to a load-balancing endpoint, and how many.

use axum::extract::Request;
use http::header::{ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, ORIGIN};
use http::{HeaderMap, HeaderValue, Method};
use longshore_engine::EndpointHandle;
use longshore_history::LimitedOperation;
use longshore_model::Permission;

use super::error::LbError;
use super::route::Target;
use super::websocket;
use crate::HttpState;
use crate::gate::auth;
use crate::gate::client;
use crate::gate::rate_limits::{RequestPermit, count_refused};

/// A request that may be forwarded.
pub(super) struct Admitted {
    pub(super) endpoint: EndpointHandle,
    /// Counts the request until it has ended; `None` for a request without a key.
    pub(super) permit: Option<RequestPermit>,
}

/// Checks the key and the rate of a request. Cookies are no key here: every page may send them.
///
/// # Errors
///
/// - 401 without a permitting key, also for an endpoint that does not exist.
/// - 404 if the endpoint does not exist.
/// - 429 over a limit.
pub(super) fn check(state: &HttpState, target: &Target, request: &Request) -> Result<Admitted, LbError> {
    let found = state.engine().endpoint(&target.endpoint);
    if let Some(endpoint) = found {
        let is_public = endpoint.record().balances().is_some_and(|lb| lb.public);
        if is_public || (is_preflight(request) && endpoint.balancer().is_some()) {
            let address = client::address(state, request.headers());
            let address = address.map(|client| client.address.to_string());
            let address = address.as_deref().unwrap_or("unknown");
            if let Err(exceeded) = state.limiter().admit_address(address, LimitedOperation::Lb) {
                count_refused(LimitedOperation::Lb, &endpoint);
                return Err(exceeded.into());
            }
            return Ok(Admitted { endpoint, permit: None });
        }
    }
    let copied;
    let credentials = if auth::credential(request.headers()).is_some() {
        request.headers()
    } else {
        copied = credentials(request.headers());
        &copied
    };
    let (caller, endpoint) =
        auth::authorize_endpoint(state, credentials, Permission::WriteJobs, &target.endpoint)?;
    let permit = caller.admit(state, &endpoint, LimitedOperation::Lb)?;
    Ok(Admitted { endpoint, permit: Some(permit) })
}

/// Whether a browser asks whether a page may send a request. Browsers send no key with it.
fn is_preflight(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The headers with the key of a request that has none in `Authorization`: the one among the protocols of a WebSocket,
/// because pages cannot send other headers with one. The client's address is found by the headers of proxies.
fn credentials(headers: &HeaderMap) -> HeaderMap {
    let mut credentials = HeaderMap::with_capacity(2);
    if let Some(mut key) = websocket::key(headers).and_then(|key| HeaderValue::try_from(key).ok()) {
        key.set_sensitive(true);
        credentials.insert(AUTHORIZATION, key);
    }
    for forwarded in headers.get_all("x-forwarded-for") {
        credentials.append("x-forwarded-for", forwarded.clone());
    }
    credentials
}
