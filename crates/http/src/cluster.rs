//! Servers that share a database: every one answers, and one of them, the owner, decides.
//!
//! ```text
//! client ──► any node ──► it owns the shards: its own routes, while its lease lasts
//!                 └─────► it does not: the owner's address for peers ──► the owner's routes
//! ```
//!
//! A request is passed on as it came, with one more header that names the client and that only nodes can write. The owner checks
//! the key of the request as it checks every key. What arrives at a node from a peer is never passed on, so that no request goes
//! in circles. Servers without peers have none of this between the connection and the routes.

mod classify;
mod continued;
mod forward;
mod local;
mod net;
mod node_edge;
mod pages;
mod peer_body;
mod peer_edge;
mod peer_head;
mod peer_tls;
mod probe;
mod serve;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use longshore_engine::{Runtime, TokioRuntime};
use longshore_model::Node;
use tokio::sync::watch;

pub use self::net::{NetFuture, PeerLink, PeerNet, PeerReply};
pub use self::node_edge::NodeEdge;
pub use self::peer_edge::PeerEdge;
pub use self::peer_head::PeerSecret;
pub use self::peer_tls::PeerTls;
pub use self::probe::{ProbeResult, is_gone, is_gone_by};
pub use self::serve::{serve_node, serve_peers};

use crate::gate::peer::Peer;
use crate::services::node_status::{Membership, NodeStatus};
use crate::services::open_connections::OpenConnections;
use crate::wire::body::BodyBudget;
use crate::{Edge, HttpSettings, Surface};

/// How long a request waits for an owner that reads its rows.
const LOAD_WAIT_MAX: Duration = Duration::from_secs(10);

/// What a node needs to answer requests, whether it owns the shards or not. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<ClusterInner>,
}

struct ClusterInner {
    status: Arc<NodeStatus>,
    secret: PeerSecret,
    /// The routes of this node, if it is the owner.
    own: watch::Sender<Option<OwnRoutes>>,
    /// Whether this node stops: polls that it passed on end.
    is_stopping: watch::Sender<bool>,
    /// The way to the other nodes.
    net: Arc<dyn PeerNet>,
    /// The clock and the random numbers of this node.
    runtime: Arc<dyn Runtime>,
    /// The time of the last job id that this node chose, in its unit.
    last_tick: AtomicU64,
    budget: BodyBudget,
    connections: OpenConnections,
    /// What requests may have before their path; empty for nothing.
    base: String,
    /// The domain of load-balancing endpoints.
    lb_domain: Option<String>,
}

/// The owner's routes, by the listener that a request came to.
#[derive(Clone)]
struct OwnRoutes {
    all: Edge,
    jobs: Edge,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("node", &self.id()).finish_non_exhaustive()
    }
}

/// Runs `task` as the task of a connection of a client at `address`, for requests that come over no socket.
pub fn as_connection<F: Future>(address: IpAddr, task: F) -> impl Future<Output = F::Output> {
    Peer::new(address, false).serve(task)
}

impl Cluster {
    /// A node that does not own the shards.
    pub fn new(
        membership: Arc<dyn Membership>,
        secret: PeerSecret,
        tls: PeerTls,
        settings: &HttpSettings,
    ) -> Self {
        let (net, runtime) = (Arc::new(net::TcpNet::new(tls)), Arc::new(TokioRuntime));
        Self::over(membership, secret, settings, net, runtime)
    }

    /// As [`Cluster::new`], over another network and with another clock than those of this computer.
    pub fn over(
        membership: Arc<dyn Membership>,
        secret: PeerSecret,
        settings: &HttpSettings,
        net: Arc<dyn PeerNet>,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let shared = ClusterInner {
            status: Arc::new(NodeStatus::new(membership)),
            secret,
            own: watch::channel(None).0,
            is_stopping: watch::channel(false).0,
            net,
            runtime,
            last_tick: AtomicU64::new(0),
            budget: BodyBudget::new(settings.bytes_in_flight_max),
            connections: OpenConnections::default(),
            base: settings.console.base.clone(),
            lb_domain: settings.lb_domain.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Answers requests with these routes from now on, while the lease of the node lasts. `took` is the time from when the node
    /// became the owner.
    pub fn own(&self, routes: &Edge, took: Duration) {
        self.shared.status.owns(took);
        let own = OwnRoutes { all: routes.clone(), jobs: routes.restricted_to(Surface::Jobs) };
        self.shared.own.send_replace(Some(own));
    }

    /// Ends the polls of workers that wait at the owner: they get no job. For a node that stops.
    pub fn release_polls(&self) {
        self.shared.is_stopping.send_replace(true);
    }

    /// Whether this node stops.
    fn is_stopping(&self) -> bool {
        *self.shared.is_stopping.borrow()
    }

    /// What answers the requests of a listener for clients, workers and operators.
    pub fn edge(&self, surface: Surface) -> NodeEdge {
        NodeEdge::new(self.clone(), surface)
    }

    /// What answers the requests of the other nodes.
    pub fn peer_edge(&self) -> PeerEdge {
        PeerEdge::new(self.clone())
    }

    /// What this node is, for the routes of the owner.
    pub fn status(&self) -> Arc<NodeStatus> {
        Arc::clone(&self.shared.status)
    }

    /// The id of this node.
    fn id(&self) -> i32 {
        self.membership().id()
    }

    fn membership(&self) -> &dyn Membership {
        self.shared.status.membership.as_ref()
    }

    fn routes(&self, surface: Surface) -> Option<Edge> {
        let own = self.shared.own.borrow();
        own.as_ref().map(|own| match surface {
            Surface::All => own.all.clone(),
            Surface::Jobs => own.jobs.clone(),
        })
    }

    /// The routes of this node; waits for them up to 10 s if it has become the owner and reads its rows. `None` if it is not the
    /// owner.
    async fn routes_soon(&self, surface: Surface) -> Option<Edge> {
        if let Some(routes) = self.routes(surface) {
            return Some(routes);
        }
        self.owner().filter(|owner| owner.id == self.id())?;
        let mut own = self.shared.own.subscribe();
        // The sender lives as long as this value.
        let _ = tokio::time::timeout(LOAD_WAIT_MAX, own.wait_for(Option::is_some)).await;
        self.routes(surface)
    }

    /// The owner, if one is known.
    fn owner(&self) -> Option<Node> {
        self.membership().nodes().borrow().owner.clone()
    }
}
