//! The fast path: the routes that every job passes, without axum's router.
//!
//! axum's router finds any path and puts any layer around it. For a submit, the router costs as much as all of hyper
//! ([ADR 0019](../../../docs/adr/0019-fast-path-and-its-prices.md) has the prices). The few routes that every job passes
//! are matched here, and their handlers are called directly.
//!
//! A request takes the fast path only if its path is spelled as documented. The router gets every other request: one
//! with another method, or with an escape in its path (other than of a `/` in an endpoint's name). The router has the
//! same routes with the same handlers, because both are made from one [`FastRoute`](crate::fast_route::FastRoute) each.

mod matching;
pub(crate) mod routes;

use axum::extract::Request;

use self::matching::find;
use crate::HttpState;
use crate::wire::BoxResponse;

/// The response to a request for one of the routes, and the route's pattern. `Err` returns any other request unchanged.
///
/// A response that is awaited for long must keep nothing of the head: the head lies in the connection's read buffer of
/// 8 KiB.
#[expect(
    clippy::result_large_err,
    reason = "a request for another route is moved to the router right after; a box costs more"
)]
pub(crate) fn answer(state: &HttpState, request: Request) -> Result<(&'static str, BoxResponse), Request> {
    let uri = request.uri().clone();
    let Some(found) = find(request.method(), uri.path()) else { return Err(request) };
    Ok((found.pattern, (found.route.handler)(state, found.path(), request)))
}
