//! The node that a server is among the servers of its database, and what it counts as one.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use longshore_model::{Node, NodeState, Nodes};
use tokio::sync::watch;

/// A node's place among the servers of its database.
pub trait Membership: Send + Sync + 'static {
    /// The id of this node.
    fn id(&self) -> i32;
    /// The nodes as this one last read them.
    fn nodes(&self) -> watch::Receiver<Arc<Nodes>>;
    /// Whether this node owns the shards, and its lease lasts.
    fn may_serve(&self) -> bool;
    /// Waits until the node may serve.
    fn until_it_may_serve(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// How long the lease of this node still lasts; zero if it is over.
    fn lease_left(&self) -> Duration;
}

/// What became of a request that this node passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// The owner answered it.
    Answered,
    /// It was sent once more, after an owner was lost.
    Repeated,
    /// An owner was lost, and the request is none that may be sent again.
    Unknown,
    /// There was no owner for too long.
    Ownerless,
}

impl Passed {
    pub(crate) const ALL: [Self; 4] = [Self::Answered, Self::Repeated, Self::Unknown, Self::Ownerless];

    /// The value of the metric's label.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Repeated => "repeated",
            Self::Unknown => "unknown",
            Self::Ownerless => "ownerless",
        }
    }
}

/// A node among the servers of its database.
pub struct NodeStatus {
    pub(crate) membership: Arc<dyn Membership>,
    /// The requests that this node passed on, by what became of them.
    passed: [AtomicU64; Passed::ALL.len()],
    /// How long it took from when this node became the owner until it served. Not set for a standby.
    takeover: OnceLock<Duration>,
}

impl std::fmt::Debug for NodeStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeStatus").field("node", &self.membership.id()).finish_non_exhaustive()
    }
}

impl NodeStatus {
    pub(crate) fn new(membership: Arc<dyn Membership>) -> Self {
        Self { membership, passed: Default::default(), takeover: OnceLock::new() }
    }

    /// The nodes as this one last read them.
    pub(crate) fn nodes(&self) -> Arc<Nodes> {
        Arc::clone(&self.membership.nodes().borrow())
    }

    /// The nodes without those that have started again since.
    pub(crate) fn shown_nodes(&self) -> Vec<Node> {
        let nodes = self.nodes();
        let is_shown = |(at, node): &(usize, &Node)| {
            node.state != NodeState::Gone || nodes.all[at + 1..].iter().all(|later| later.name != node.name)
        };
        nodes.all.iter().enumerate().filter(is_shown).map(|(_, node)| node.clone()).collect()
    }

    /// Notes that this node serves as the owner.
    pub(crate) fn owns(&self, takeover: Duration) {
        // A node becomes the owner once.
        let _ = self.takeover.set(takeover);
    }

    /// How long it took from when this node became the owner until it served; `None` for a standby.
    pub(crate) fn takeover(&self) -> Option<Duration> {
        self.takeover.get().copied()
    }

    pub(crate) fn count(&self, passed: Passed) {
        self.passed[passed as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counted(&self, passed: Passed) -> u64 {
        self.passed[passed as usize].load(Ordering::Relaxed)
    }
}
