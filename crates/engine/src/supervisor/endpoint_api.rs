//! The endpoint and its queue, as a supervisor uses them.

use std::future::Future;
use std::sync::Arc;

use longshore_model::{Endpoint, Millis, Placement, WorkerId};

use crate::admitted_workers::AdmittedWorkers;
use crate::balancer::address::WorkerAddress;
use crate::traces::Fact;
use crate::{EndpointError, EventCounts, FleetView, Workers};

/// The endpoint and its queue, as a supervisor uses them. A trait, so that supervisors are tested without an actor.
///
/// The methods that return a result fail with [`EndpointError::Deleted`] if the endpoint is deleted. Any other error
/// means that the queue is unavailable; the supervisor retries later.
pub trait EndpointApi: Send + Sync + 'static {
    /// Returns the present resource of the endpoint.
    fn record(&self) -> Arc<Endpoint>;
    /// Returns the time of the engine's clock.
    fn now(&self) -> Millis;
    /// Returns the counters of the endpoint's workers.
    fn counts(&self) -> &EventCounts;
    /// Notes that a worker is started at this time, or was by an earlier server.
    fn note_start(&self, _at: Millis) {}
    /// Counts a worker that became ready this time after its start.
    fn count_start(&self, start_ms: u64) {
        self.counts().start_ms.record(start_ms);
    }
    /// Sends the span of a worker's start, from its placement's time to `ready_at`.
    fn trace_start(&self, _worker: &WorkerId, _placement: &Placement, _ready_at: Millis) {}
    /// Returns the workers whose tokens are valid.
    fn admitted(&self) -> &AdmittedWorkers;
    /// Returns whether the server drains: every worker is drained, and none started.
    fn is_server_draining(&self) -> bool;
    /// Returns the load of the queue and the workers that the queue knows.
    fn fleet_view(&self) -> impl Future<Output = Result<FleetView, EndpointError>> + Send;
    /// Registers a managed worker at the queue, also one that the queue knows from its takes. A load-balancing endpoint
    /// forwards requests to its `address`, and replaces a worker without one.
    fn register_worker(
        &self,
        worker: WorkerId,
        address: Option<WorkerAddress>,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// Drains a worker: the queue gives it no further job.
    fn drain_worker(&self, worker: WorkerId) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// Tells the queue that a worker exited: its jobs are requeued, and count a retry if `counts_retry`. `reason` is
    /// the error of jobs without a retry left.
    fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
}

impl EndpointApi for Workers {
    fn record(&self) -> Arc<Endpoint> {
        self.shared.record()
    }

    fn now(&self) -> Millis {
        self.shared.now()
    }

    fn counts(&self) -> &EventCounts {
        &self.shared.metrics.events
    }

    fn note_start(&self, at: Millis) {
        self.shared.note_start(at);
    }

    fn count_start(&self, start_ms: u64) {
        self.counts().start_ms.record(start_ms);
        self.shared.metrics.activity.started(start_ms);
    }

    fn trace_start(&self, worker: &WorkerId, placement: &Placement, ready_at: Millis) {
        if let Some(traces) = &self.shared.services.traces {
            let (worker, placement) = (worker.clone(), placement.clone());
            traces.add(Fact::WorkerStart { endpoint: self.shared.record(), worker, placement, ready_at });
        }
    }

    fn admitted(&self) -> &AdmittedWorkers {
        &self.shared.admitted
    }

    fn is_server_draining(&self) -> bool {
        self.shared.services.drain.since().is_some()
    }

    async fn fleet_view(&self) -> Result<FleetView, EndpointError> {
        Self::fleet_view(self).await
    }

    async fn register_worker(
        &self,
        worker: WorkerId,
        address: Option<WorkerAddress>,
    ) -> Result<(), EndpointError> {
        self.register(worker, address).await
    }

    async fn drain_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.drain(worker).await
    }

    async fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> Result<(), EndpointError> {
        self.lose(worker, counts_retry, reason).await
    }
}
