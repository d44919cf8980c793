//! What a supervisor needs of its endpoint.

use std::future::Future;
use std::sync::Arc;

use longshore_model::{Endpoint, Millis, WorkerId};

use crate::{AskError, EndpointHandle, FleetView};

/// What a supervisor needs of its endpoint. Its own trait, so that deciding can be tested without an actor.
pub trait Port: Send + Sync + 'static {
    /// The endpoint's record as it is now.
    fn record(&self) -> Arc<Endpoint>;
    /// The engine's clock.
    fn now(&self) -> Millis;
    /// Load and workers.
    fn fleet_view(&self) -> impl Future<Output = Result<FleetView, AskError>> + Send;
    /// A launcher runs this worker.
    fn introduce(&self, worker: WorkerId) -> impl Future<Output = Result<(), AskError>> + Send;
    /// No more jobs for this worker.
    fn drain(&self, worker: WorkerId) -> impl Future<Output = Result<(), AskError>> + Send;
    /// The worker is gone.
    fn lose(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> impl Future<Output = Result<(), AskError>> + Send;
}

impl Port for EndpointHandle {
    fn record(&self) -> Arc<Endpoint> {
        Self::record(self)
    }

    fn now(&self) -> Millis {
        Self::now(self)
    }

    async fn fleet_view(&self) -> Result<FleetView, AskError> {
        Self::fleet_view(self).await
    }

    async fn introduce(&self, worker: WorkerId) -> Result<(), AskError> {
        Self::introduce(self, worker).await
    }

    async fn drain(&self, worker: WorkerId) -> Result<(), AskError> {
        Self::drain(self, worker).await
    }

    async fn lose(&self, worker: WorkerId, counts_retry: bool, reason: String) -> Result<(), AskError> {
        Self::lose(self, worker, counts_retry, reason).await
    }
}
