//! The operations of one endpoint's workers, and of the supervisor that runs them.
//!
//! ```text
//!   worker:      take ──► append, progress ──► report         ping, stops: at intervals
//!   supervisor:  register ──► fleet_view ──► drain ──► lose
//! ```
//!
//! Arguments and results are owned data, so that an endpoint of another node can have the same interface.

mod append;
pub(crate) mod fleet;
mod report;
pub(crate) mod take;

use std::sync::Arc;
use std::time::Duration;

use longshore_model::{JobId, StopReason, WorkerId};

use crate::EndpointError;
use crate::actor::request::Request;
use crate::endpoint_shared::EndpointShared;
use crate::supervisor::FleetEvent;

/// The workers of one endpoint. A clone refers to the same workers.
///
/// An external worker needs no registration: its first take or ping makes it known. A method that changes something
/// returns after the change is durable.
///
/// Every method that returns an [`EndpointError`] may return these; the methods document the other errors:
///
/// - [`EndpointError::Deleted`] if the endpoint is deleted.
/// - [`EndpointError::CommitFailed`] if the commit that covers the reply failed.
/// - [`EndpointError::Unavailable`] if the queue reloads.
/// - [`EndpointError::Overloaded`] if the request budget has no memory for the request.
#[derive(Clone)]
pub struct Workers {
    pub(crate) shared: Arc<EndpointShared>,
}

impl Workers {
    pub(crate) fn new(shared: Arc<EndpointShared>) -> Self {
        Self { shared }
    }

    /// Renews the worker's lease. `holds` are the jobs that the worker has in progress, `None` if it does not say; ids
    /// of other jobs are ignored. The list confirms deliveries, and a job that is missing twice is requeued.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn ping(&self, worker: WorkerId, holds: Option<Vec<JobId>>) -> Result<(), EndpointError> {
        self.shared.request(|reply| Request::Ping { worker, holds, reply }).await
    }

    /// Returns the jobs that the worker must stop, or none after `hold`. Renews the worker's lease. A returned signal
    /// is not returned again unless a ping still lists the job.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn stops(&self, worker: WorkerId, hold: Duration) -> Result<Vec<JobId>, EndpointError> {
        // A worker whose pings are delayed on the network is not lost while it polls here.
        self.shared.send(Request::TouchWorker { worker: worker.clone() })?;
        Ok(self.shared.stop_signals.next(&worker, hold).await)
    }

    /// Drains a worker that failed its own check and exits, and has its supervisor replace it.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn report_unfit(&self, worker: WorkerId, reason: String) -> Result<(), EndpointError> {
        tracing::warn!(endpoint = %self.shared.id, %worker, %reason, "a worker says that it is not fit to run");
        self.drain(worker.clone()).await?;
        self.shared.notify_fleet(FleetEvent::Replace { worker, reason });
        Ok(())
    }

    /// Drains a worker that requested its replacement (`stopPod`), and has its supervisor replace it.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn request_replacement(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.drain_for(worker, StopReason::WorkerRequest).await
    }

    /// Drains a managed worker for an operator: it gets no further job, and is stopped after its running ones.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn drain_managed(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.drain_for(worker, StopReason::Operator).await
    }

    async fn drain_for(&self, worker: WorkerId, reason: StopReason) -> Result<(), EndpointError> {
        self.drain(worker.clone()).await?;
        self.shared.notify_fleet(FleetEvent::Drain { worker, reason });
        Ok(())
    }

    /// Begins to stop a managed worker for an operator: it gets no further job, and its running ones are requeued without
    /// counting a retry, unless they end within the stop grace.
    ///
    /// # Errors
    ///
    /// Only those of every method of [`Workers`].
    pub async fn stop_managed(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.drain(worker.clone()).await?;
        self.shared.notify_fleet(FleetEvent::Stop { worker });
        Ok(())
    }

    /// Ends the wait after crashes of the endpoint's workers.
    pub fn try_now(&self) {
        self.shared.notify_fleet(FleetEvent::TryNow);
    }
}
