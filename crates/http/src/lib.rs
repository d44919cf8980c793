//! The HTTP interface: the job routes, the worker protocol, the management API, the console, and the edge before them.
//!
//! The edge rejects ambiguous heads, normalizes the path of a request, writes one log line and catches panics. Then the key is checked, the
//! endpoint looked up and the rate counted; only then is the body read. Payload bytes from the engine go into the response
//! without being parsed; those of 16 KiB or more are not copied either.

mod audit;
mod cluster;
mod connection;
mod console;
mod edge;
mod events;
mod fast_path;
mod fast_route;
mod gate;
mod graphql;
mod jobs;
mod lb;
mod management;
mod metrics;
mod openai;
mod openapi;
mod readiness;
mod services;
mod sessions;
mod state;
#[cfg(test)]
mod tests;
mod wire;
mod workers;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};

pub use audit::{AuditLine, AuditLog, AuditRuns, AuditStorage};
pub use cluster::{
    Cluster, NetFuture, NodeEdge, PeerEdge, PeerLink, PeerNet, PeerReply, PeerSecret, PeerTls, ProbeResult,
    as_connection, is_gone, is_gone_by, serve_node, serve_peers,
};
pub use connection::accept::serve;
pub use connection::tls::{Tls, TlsError};
pub use console::session::note_session_use;
pub use console::settings::ConsoleSettings;
pub use edge::{Edge, Origins, Surface};
pub use gate::auth::{MintedKey, admin_key, mint_key};
pub use gate::rate_limits::{Limit, RateLimits, RateTable};
pub use management::forget_unused_code;
pub use services::certificate_end::CertificateEnd;
pub use services::files::{
    CodeArchive, CodeError, CodeUpload, CodeVersion, FileService, IsUsed, KeptCode, VolumeUse, WorkerLog,
};
pub use services::node_status::{Membership, NodeStatus};
pub use services::prices::Prices;
pub use services::scrub::ScrubReport;
pub use services::server_facts::ServerFacts;
pub use state::{HttpSettings, HttpState};
pub use wire::base_path::is_base_path;
pub use wire::did_you_mean::nearest;
pub use wire::trusted_proxies::TrustedProxies;

/// All routes of the server, behind the edge.
pub fn router(state: HttpState) -> Edge {
    let routes = routes()
        .fallback(gate::fallback::unknown_route)
        .method_not_allowed_fallback(gate::fallback::unknown_method)
        .layer(from_fn_with_state(state.clone(), management::full_disk::refuse))
        .layer(from_fn_with_state(state.clone(), management::audit_trail::watch))
        .layer(from_fn(console::packed::pack))
        .layer(from_fn_with_state(state.clone(), metrics::count))
        .with_state(state.clone());
    Edge::around(routes).with_fast_path(state)
}

fn routes() -> Router<HttpState> {
    let others = Router::new()
        .merge(edge::probes::routes())
        .merge(jobs::sdk_group().routes())
        .merge(workers::routes())
        .merge(metrics::routes())
        .merge(graphql::routes())
        .merge(console::routes());
    management::all_groups().into_iter().map(openapi::Group::routes).fold(others, Router::merge)
}
