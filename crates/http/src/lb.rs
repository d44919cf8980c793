//! Requests to load-balancing endpoints, which are forwarded to workers that serve HTTP.
//!
//! ```text
//!   route ──► access ──► Balancer::admit ──► request_head ──► forward ──► response_head ──► streamed | tunnel
//!             key, rate   a worker with room   without ours     sends        without the      the body, or
//!                                              and hop-by-hop                worker's own     an upgrade
//! ```
//!
//! The path of the worker is not normalized, and its body is neither read nor unpacked: what the client sent is what the
//! worker gets. Every request goes to the worker as HTTP/1.1 with `Host` of the worker.

mod access;
mod cookies;
mod error;
mod forward;
mod frames;
pub(crate) mod numbers;
mod openapi;
pub(crate) mod request_head;
mod response_head;
pub(crate) mod route;
mod streamed;
mod trace;
mod tunnel;
mod upload;
mod websocket;

use std::future::ready;

use axum::extract::Request;
use axum::response::Response;
use http::uri::PathAndQuery;
use http::{Method, StatusCode};
use longshore_engine::{Balancer, BalancerOutcome, EndpointHandle};
use tokio::time::Instant;

use self::access::Admitted;
use self::error::LbError;
use self::forward::{Forwarding, ForwardingRules, ResponsePlace};
pub(crate) use self::openapi::group;
use self::route::Target;
use self::trace::RequestTrace;
use crate::HttpState;
use crate::gate::rate_limits::RequestPermit;
use crate::wire::BoxResponse;
use crate::wire::request_id::{self, RequestId};

/// The pattern under which requests are counted.
pub(crate) const PATTERN: &str = "/lb/{endpoint}/{*path}";

/// Marks a response that a worker made, which stays as it is, on an address that other responses have too.
#[derive(Clone, Copy)]
pub(crate) struct MadeByWorker;

/// Answers a request to a load-balancing endpoint. `has_console` says whether the listener serves the console too. The key
/// is checked before the future is returned.
pub(crate) fn answer(
    state: &HttpState,
    target: Target,
    request: Request,
    id: &RequestId,
    has_console: bool,
) -> BoxResponse {
    if request.method() == Method::CONNECT {
        return Box::pin(ready(LbError::NoProxy.into_response()));
    }
    let admitted = match access::check(state, &target, &request) {
        Ok(admitted) => admitted,
        Err(refused) => return Box::pin(ready(refused.into_response())),
    };
    // A page of a worker must not share the origin of the console.
    let is_sandboxed = target.prefix.is_some() && state.console().is_on && has_console;
    forward(state, target, request, id, admitted, ResponsePlace { is_sandboxed, is_shared: false })
}

/// Forwards a request whose key and rate were checked. The worker gets it under `path`.
pub(crate) fn pass(
    state: &HttpState,
    endpoint: EndpointHandle,
    permit: RequestPermit,
    path: PathAndQuery,
    request: Request,
) -> BoxResponse {
    let id = request.extensions().get::<RequestId>().cloned();
    let id = id.unwrap_or_else(|| request_id::of(request.headers()).0);
    let target = Target { endpoint: endpoint.id().to_string(), prefix: None, path };
    let admitted = Admitted { endpoint, permit: Some(permit) };
    forward(state, target, request, &id, admitted, ResponsePlace { is_sandboxed: false, is_shared: true })
}

fn forward(
    state: &HttpState,
    target: Target,
    request: Request,
    id: &RequestId,
    admitted: Admitted,
    place: ResponsePlace,
) -> BoxResponse {
    let Admitted { endpoint, permit } = admitted;
    let record = endpoint.record();
    let (Some(balancer), Some(settings)) = (endpoint.balancer().cloned(), record.balances()) else {
        return Box::pin(ready(LbError::HasQueue(record.id).into_response()));
    };
    let rules = ForwardingRules::of(settings);
    let prefix = target.full_prefix(state);
    let context = request_head::Context::of(state, prefix.as_deref(), &request, id);
    let trace = RequestTrace::begin(state.engine(), &record, &request);
    let forwarding = Forwarding { balancer, rules, permit, place, prefix, trace, id: id.clone() };
    Box::pin(forwarding.run(context, target.path, request))
}

/// Counts a response that the server makes in place of a worker, and logs it if a worker is the reason.
fn refused(balancer: &Balancer, id: &RequestId, error: LbError) -> Response {
    balancer.metrics().count(BalancerOutcome::Refused, Instant::now());
    let error = error.into_api_error();
    if matches!(error.status(), StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT) {
        let endpoint = balancer.record().map(|record| tracing::field::display(record.id));
        let (code, reason) = (error.code(), error.text());
        tracing::warn!(request = %id, endpoint, code, reason, "request not forwarded");
    }
    error::response(error)
}
