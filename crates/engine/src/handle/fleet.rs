//! What the supervisor and the webhook chore ask.

use std::sync::Arc;

use bytes::Bytes;
use longshore_model::{Endpoint, JobEnd, JobId, Millis, WorkerCounts, WorkerId, WorkerPhase};
use longshore_queue::WorkerLoad;

use super::EndpointHandle;
use crate::actor::query::Query;
use crate::actor::request::Request;
use crate::webhooks::WebhookSource;
use crate::{EndpointError, FleetStatus, FleetView, JobSnapshot};

impl EndpointHandle {
    /// Load and workers, for the supervisor.
    pub async fn fleet_view(&self) -> Result<FleetView, EndpointError> {
        self.shared.load_seen();
        self.query(|reply| Query::Fleet { reply }).await.map(|view| *view)
    }

    /// A launcher started this worker, or found it alive.
    pub async fn register_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.request(|reply| Request::RegisterWorker { worker, reply }).await
    }

    /// No more jobs for this worker. Its open polls are answered empty.
    pub async fn drain_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.request(|reply| Request::DrainWorker { worker, reply }).await
    }

    /// The worker is gone; its jobs go back to the queue.
    pub async fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> Result<(), EndpointError> {
        self.request(|reply| Request::LoseWorker { worker, counts_retry, reason, reply }).await
    }

    /// What the supervisor knows of the endpoint's workers that the queue cannot: those that are starting, those
    /// held back because they keep crashing, and why the last one did.
    pub fn fleet_status(&self) -> FleetStatus {
        self.shared.fleet_status()
    }
}

/// The six numbers of `/health`: what the queue sees, and what only the supervisor knows.
pub(super) fn count(workers: &[WorkerLoad], status: &FleetStatus) -> WorkerCounts {
    let of = |phase| workers.iter().filter(|worker| worker.phase == phase).count() as u32;
    let holding = workers.iter().filter(|worker| worker.running > 0).count() as u32;
    WorkerCounts {
        idle: of(WorkerPhase::Idle),
        initializing: of(WorkerPhase::Initializing).max(status.initializing),
        ready: of(WorkerPhase::Idle),
        running: holding,
        throttled: status.throttled,
        unhealthy: status.unhealthy,
    }
}

impl WebhookSource for EndpointHandle {
    async fn status(&self, job: JobId) -> Result<JobSnapshot, EndpointError> {
        self.stored(job).await
    }

    async fn members(&self, job: JobId) -> Result<Bytes, EndpointError> {
        Self::members(self, job).await
    }

    async fn webhook_attempted(
        &self,
        job: JobId,
        end: JobEnd,
        attempts: u32,
        due_at: Millis,
    ) -> Result<(), EndpointError> {
        self.request(|reply| Request::WebhookAttempted { job, end, attempts, due_at, reply }).await
    }

    async fn settle_webhook(&self, job: JobId, end: JobEnd) -> Result<(), EndpointError> {
        self.request(|reply| Request::SettleWebhook { job, end, reply }).await
    }

    fn endpoint(&self) -> Arc<Endpoint> {
        self.record()
    }

    fn signature(&self, id: &str, now: Millis, body: &[u8]) -> Option<String> {
        self.shared.secrets().sign(id, now, body)
    }

    fn now(&self) -> Millis {
        Self::now(self)
    }
}
