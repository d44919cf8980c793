//! Counts the requests of sessions before they are routed, and marks their responses.

use axum::response::Response;
use http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};

use crate::HttpState;
use crate::gate::caller::current_session;
use crate::gate::rate_limits::LimitExceeded;
use crate::gate::session_rates::SessionPermit;

/// Counts a request if it has a session. `None` for every other one.
///
/// # Errors
///
/// [`LimitExceeded`] if the session is over a limit.
pub(crate) fn admit(state: &HttpState, headers: &HeaderMap) -> Result<Option<SessionPermit>, LimitExceeded> {
    let session = current_session(state, headers);
    session.map(|session| state.session_rates().admit(&session.id)).transpose()
}

/// Ends a request of a session, and keeps the browser from storing its response.
pub(crate) fn close(permit: SessionPermit, mut response: Response) -> Response {
    drop(permit);
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.entry(X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    response
}
