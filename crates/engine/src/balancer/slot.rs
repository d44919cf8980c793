//! A slot of a worker: the place for one request.

use std::sync::Arc;

use longshore_fleet::WorkerKey;

use super::{BalancedServer, Balancer};

/// A worker's place for one request, which counts as outstanding until the slot is dropped.
pub struct RequestSlot {
    balancer: Arc<Balancer>,
    key: WorkerKey,
    worker: Arc<BalancedServer>,
}

impl RequestSlot {
    pub(super) fn new(balancer: Arc<Balancer>, key: WorkerKey, worker: Arc<BalancedServer>) -> Self {
        Self { balancer, key, worker }
    }

    /// The worker that gets the request.
    pub fn worker(&self) -> &Arc<BalancedServer> {
        &self.worker
    }

    /// The balancer of the endpoint.
    pub fn balancer(&self) -> &Arc<Balancer> {
        &self.balancer
    }

    pub(super) fn key(&self) -> WorkerKey {
        self.key
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.balancer.done(self.key);
    }
}
