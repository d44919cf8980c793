//! What a supervisor needs of its endpoint.

use std::future::Future;
use std::sync::Arc;

use longshore_model::{Endpoint, Millis, WorkerId};

use crate::{EndpointError, EndpointHandle, FleetView};

/// What a supervisor needs of its endpoint. Its own trait, so that deciding can be tested without an actor.
pub trait EndpointApi: Send + Sync + 'static {
    /// The endpoint's record as it is now.
    fn record(&self) -> Arc<Endpoint>;
    /// The engine's clock.
    fn now(&self) -> Millis;
    /// Load and workers.
    fn fleet_view(&self) -> impl Future<Output = Result<FleetView, EndpointError>> + Send;
    /// A launcher runs this worker.
    fn register_worker(&self, worker: WorkerId) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// No more jobs for this worker.
    fn drain_worker(&self, worker: WorkerId) -> impl Future<Output = Result<(), EndpointError>> + Send;
    /// The worker is gone.
    fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> impl Future<Output = Result<(), EndpointError>> + Send;
}

impl EndpointApi for EndpointHandle {
    fn record(&self) -> Arc<Endpoint> {
        Self::record(self)
    }

    fn now(&self) -> Millis {
        Self::now(self)
    }

    async fn fleet_view(&self) -> Result<FleetView, EndpointError> {
        Self::fleet_view(self).await
    }

    async fn register_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        Self::register_worker(self, worker).await
    }

    async fn drain_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        Self::drain_worker(self, worker).await
    }

    async fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> Result<(), EndpointError> {
        Self::lose_worker(self, worker, counts_retry, reason).await
    }
}
