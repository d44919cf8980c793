//! The wire: the job interface, the worker protocol, the management API, and the edge that guards them.
//!
//! A request passes the edge (one spelling of its path, one log line, no panic gets out), its key is checked,
//! its endpoint found, its rate counted; only then is its body read. What the engine answers is spliced into
//! the response as it is: payload bytes are never parsed a second time.

mod audit;
mod body;
mod connection;
mod edge;
mod errors;
mod events;
mod fast_path;
mod files;
mod graphql;
mod half_close;
mod jobs;
mod json_body;
mod keys;
mod lingering;
mod management;
mod metrics;
mod nearest;
mod nesting;
mod openai;
mod operations;
mod peer;
mod prices;
mod probes;
mod query;
mod rate_limits;
mod rfc3339;
mod route_path;
mod scrub;
mod serve;
mod stalls;
mod state;
#[cfg(test)]
mod tests;
mod tls;
mod turns;
mod unpacking;
mod window;
mod workers;

use axum::Router;
use axum::middleware::from_fn_with_state;

pub use audit::AuditLog;
pub use edge::{Edge, Origins, Part};
pub use files::{CodeError, CodeVersion, IsUsed, ServerFiles, WorkerLog};
pub use jobs::members_of_submit;
pub use keys::{MintedKey, admin_key, mint_key};
pub use management::forget_unused_code;
pub use nearest::nearest;
pub use prices::Prices;
pub use rate_limits::{Limit, RateLimits, RateTable};
pub use scrub::ScrubReport;
pub use serve::serve;
pub use state::{HttpSettings, HttpState};
pub use tls::{Tls, TlsError};

/// Every route of the server, behind the edge.
pub fn router(state: HttpState) -> Edge {
    let routes = routes()
        .fallback(edge::unknown_route)
        .method_not_allowed_fallback(edge::unknown_method)
        .layer(from_fn_with_state(state.clone(), audit::watch))
        .layer(from_fn_with_state(state.clone(), metrics::count))
        .with_state(state.clone());
    Edge::around(routes).with_fast_path(state)
}

fn routes() -> Router<HttpState> {
    let others = Router::new()
        .merge(probes::routes())
        .merge(jobs::sdk_group().routes())
        .merge(workers::routes())
        .merge(metrics::routes())
        .merge(graphql::routes());
    groups().into_iter().map(operations::Group::routes).fold(others, Router::merge)
}

/// Every operation that the API's document shows.
fn groups() -> Vec<operations::Group> {
    let mut groups = management::groups();
    groups.push(jobs::group());
    groups.push(openai::group());
    groups
}
