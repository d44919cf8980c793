//! What a node that does not own the shards answers by itself: whether it works, and its metrics.

use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use longshore_model::NodeState;

use super::Cluster;
use crate::metrics::nodes::page;
use crate::wire::api_error::ApiError;
use crate::wire::json_body::JsonBody;

impl Cluster {
    /// The response of a standby to a request about itself; `None` for every other path.
    pub(super) fn own_page(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        match path {
            "/healthz" => Some(with_status("ok")),
            "/readyz" => Some(self.readiness()),
            // It names no endpoint, so that it needs no key, which only the owner can check.
            "/metrics" => Some(page(&self.shared.status, headers)),
            _ => None,
        }
    }

    fn readiness(&self) -> Response {
        let not_ready = |text: &'static str| ApiError::unavailable("not_ready", text).into_response();
        if self.membership().lease_left().is_zero() {
            return not_ready("the database does not answer");
        }
        let nodes = self.shared.status.nodes();
        match nodes.owner.as_ref() {
            Some(owner) if owner.id == self.id() => not_ready("the node is still loading its endpoints"),
            Some(owner) if owner.state == NodeState::Owner => with_status("ready"),
            _ => not_ready("no node owns the shards yet"),
        }
    }
}

/// The response `{"status":"<status>","role":"standby"}`.
fn with_status(status: &str) -> Response {
    let mut body = JsonBody::new();
    body.text("{\"status\":").string(status).text(",\"role\":\"standby\"}");
    body.into_response()
}
