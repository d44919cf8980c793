//! Answers the clients, workers and operators of a node, whether it owns the shards or not.

use std::convert::Infallible;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};

use super::Cluster;
use super::classify::Class;
use crate::Surface;
use crate::connection::answers::Answers;
use crate::edge::ambiguous_head;
use crate::lb::route::is_named_by_host;
use crate::services::open_connections::OpenConnection;
use crate::wire::api_error::ApiError;
use crate::wire::base_path::without_base;
use crate::wire::sse;

/// The routes of a node for one listener. Cheap to clone.
#[derive(Clone)]
pub struct NodeEdge {
    cluster: Cluster,
    surface: Surface,
}

impl NodeEdge {
    pub(super) fn new(cluster: Cluster, surface: Surface) -> Self {
        Self { cluster, surface }
    }

    /// Answers a request. Must be called in the task of its connection.
    pub async fn response(self, request: Request) -> Response {
        let Self { cluster, surface } = self;
        if let Some(routes) = cluster.routes(surface) {
            if is_probe(request.uri().path(), &cluster.shared.base) {
                let Ok(response) = routes.answer(request).await;
                return response;
            }
            return match cluster.within_lease(&routes, request).await {
                Ok(response) => response,
                Err(loss) => loss.error().into_response(),
            };
        }
        if let Err(ambiguous) = ambiguous_head::check(&request) {
            return ambiguous.into_response();
        }
        let shared = &cluster.shared;
        let path = without_base(request.uri().path(), &shared.base).unwrap_or(request.uri().path());
        if is_named_by_host(shared.lb_domain.as_deref(), request.uri(), request.headers()) {
            // Every path is the worker's.
            return cluster.pass_on(Class::of_forwarded(request.method()), surface, request).await;
        }
        if !surface.has(path) {
            return ApiError::no_such_route().into_response();
        }
        if let Some(page) = cluster.own_page(path, request.headers()) {
            return page;
        }
        let wants_events = sse::are_wanted(request.headers());
        let class = Class::of(request.method(), request.uri(), &shared.base, wants_events);
        cluster.pass_on(class, surface, request).await
    }
}

impl Answers for NodeEdge {
    fn answer(&self, request: Request) -> impl Future<Output = Result<Response, Infallible>> + Send {
        let edge = self.clone();
        async move { Ok(edge.response(request).await) }
    }

    fn count_connection(&self) -> Option<OpenConnection> {
        Some(self.cluster.shared.connections.open())
    }
}

/// Whether a request asks about this node, which answers it also without a lease.
fn is_probe(path: &str, base: &str) -> bool {
    matches!(without_base(path, base).unwrap_or(path), "/healthz" | "/readyz" | "/metrics")
}
