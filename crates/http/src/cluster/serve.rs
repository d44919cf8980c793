//! Serves the listeners of a node.

use tokio::net::TcpListener;

use super::{NodeEdge, PeerEdge};
use crate::Tls;
use crate::connection::accept::accept;

/// Serves the clients, workers and operators of a node, as [`serve`](crate::serve) does.
pub async fn serve_node(
    listener: TcpListener,
    edge: NodeEdge,
    tls: Option<Tls>,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) {
    accept(listener, edge, tls, connections_max, shutdown).await;
}

/// Serves the other nodes of a cluster, as [`serve`](crate::serve) does.
pub async fn serve_peers(
    listener: TcpListener,
    edge: PeerEdge,
    tls: Option<Tls>,
    connections_max: usize,
    shutdown: impl Future<Output = ()>,
) {
    accept(listener, edge, tls, connections_max, shutdown).await;
}
