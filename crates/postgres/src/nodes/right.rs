//! The right to decide about jobs, which ends with the lease.

use tokio::sync::watch;

use super::NodeRights;

/// The right of a node to decide about jobs. It ends with the node's lease, and begins again with the next one. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ServingRight(watch::Receiver<NodeRights>);

impl ServingRight {
    pub(super) fn new(rights: watch::Receiver<NodeRights>) -> Self {
        Self(rights)
    }

    /// Whether the node is the owner and its lease lasts: then no other node can have taken over.
    pub fn lasts(&self) -> bool {
        self.0.borrow().may_serve()
    }
}
