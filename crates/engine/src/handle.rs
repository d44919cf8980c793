//! A way to one endpoint's actor.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_model::{Endpoint, JobId, Millis, WorkerId};

use crate::{
    AskError, FleetView, Health, JobPage, JobSnapshot, ListQuery, Outcome, StreamFrom, StreamPage, Submission,
    TakeAsk, TakenJob,
};

/// A way to one endpoint's actor. Cheap to clone; outlives the endpoint (then everything is [`AskError::Gone`]).
///
/// Every method that changes something returns after the change is durable. Dropping a returned future hangs
/// up: a parked take or wait ends, a submitted job stays.
#[derive(Clone)]
pub struct EndpointHandle {}

impl EndpointHandle {
    /// The endpoint's record as it is now.
    pub fn record(&self) -> Arc<Endpoint> { todo!() }
    /// How many of its workers hold a job at this moment; for the dynamic rate limits.
    pub fn running_workers(&self) -> u32 { todo!() }
    /// Hands in a job. The snapshot is that of an earlier job if the id or the idempotency key came before.
    pub async fn submit(&self, submission: Submission) -> Result<JobSnapshot, AskError> { todo!("{submission:?}") }
    /// Hands in a job and waits until it is terminal or `wait` passed; answers the job as it is then.
    pub async fn submit_and_wait(&self, submission: Submission, wait: Duration) -> Result<JobSnapshot, AskError> { todo!("{submission:?}{wait:?}") }
    /// The job as it is.
    pub async fn status(&self, job: JobId) -> Result<JobSnapshot, AskError> { todo!("{job}") }
    /// The job when it is terminal, or as it is when `wait` passed.
    pub async fn wait(&self, job: JobId, wait: Duration) -> Result<JobSnapshot, AskError> { todo!("{job}{wait:?}") }
    /// Sets the time of the job's deletion to `ttl_ms` from now; answers the job as it is.
    pub async fn keep(&self, job: JobId, ttl_ms: u64) -> Result<JobSnapshot, AskError> { todo!("{job}{ttl_ms}") }
    /// Ends a job; answers it as it is then, which is not cancelled if it was terminal before.
    pub async fn cancel(&self, job: JobId) -> Result<JobSnapshot, AskError> { todo!("{job}") }
    /// Queues a failed or timed-out job again.
    pub async fn retry(&self, job: JobId) -> Result<JobSnapshot, AskError> { todo!("{job}") }
    /// Cancels every queued job; answers how many.
    pub async fn purge(&self) -> Result<u64, AskError> { todo!() }
    /// The endpoint's numbers.
    pub async fn health(&self) -> Result<Health, AskError> { todo!() }
    /// Jobs, newest first.
    pub async fn list(&self, query: ListQuery) -> Result<JobPage, AskError> { todo!("{query:?}") }
    /// A job's submitted members (as in [`Submission::members`]).
    pub async fn members(&self, job: JobId) -> Result<Bytes, AskError> { todo!("{job}") }
    /// Chunks of a job's stream. Waits up to `wait` while there is none and the job is not terminal.
    pub async fn read_stream(&self, job: JobId, from: StreamFrom, wait: Duration) -> Result<StreamPage, AskError> { todo!("{job}{from:?}{wait:?}") }
    /// Moves the drain cursor: chunks below `offset` reached their reader. Does not wait for the disk.
    pub fn drained(&self, job: JobId, offset: u64) { todo!("{job}{offset}") }

    /// Jobs for a worker; empty when `hold_ms` passed without one.
    pub async fn take(&self, worker: WorkerId, ask: TakeAsk) -> Result<Vec<TakenJob>, AskError> { todo!("{worker}{ask:?}") }
    /// A job's outcome. A report that no longer counts is `Ok` too.
    pub async fn finish(&self, worker: WorkerId, job: JobId, outcome: Outcome) -> Result<(), AskError> { todo!("{worker}{job}{outcome:?}") }
    /// A progress value: JSON text.
    pub async fn progress(&self, worker: WorkerId, job: JobId, value: Bytes) -> Result<(), AskError> { todo!("{worker}{job}{value:?}") }
    /// Chunks of a job's stream, each JSON text of at most 1 MB.
    pub async fn append(&self, worker: WorkerId, job: JobId, chunks: Vec<Bytes>) -> Result<(), AskError> { todo!("{worker}{job}{chunks:?}") }
    /// A worker lives and holds these jobs (none: it did not say; ids that are not ours are left out).
    pub async fn ping(&self, worker: WorkerId, holds: Option<Vec<JobId>>) -> Result<(), AskError> { todo!("{worker}{holds:?}") }
    /// A worker says that it is not fit to run (a failed self-check) and is about to exit.
    pub async fn unfit(&self, worker: WorkerId, reason: String) -> Result<(), AskError> { todo!("{worker}{reason}") }
    /// The jobs that a worker must stop; empty when `hold` passed without one.
    pub async fn stops(&self, worker: WorkerId, hold: Duration) -> Result<Vec<JobId>, AskError> { todo!("{worker}{hold:?}") }
    /// A worker asked to be replaced (`stopPod`).
    pub async fn refresh(&self, worker: WorkerId) -> Result<(), AskError> { todo!("{worker}") }

    /// Load and workers, for the supervisor.
    pub async fn fleet_view(&self) -> Result<FleetView, AskError> { todo!() }
    /// A launcher started this worker, or found it alive.
    pub async fn introduce(&self, worker: WorkerId) -> Result<(), AskError> { todo!("{worker}") }
    /// No more jobs for this worker. Its open polls are answered empty.
    pub async fn drain(&self, worker: WorkerId) -> Result<(), AskError> { todo!("{worker}") }
    /// The worker is gone; its jobs go back to the queue.
    pub async fn lose(&self, worker: WorkerId, counts_retry: bool, reason: String) -> Result<(), AskError> { todo!("{worker}{counts_retry}{reason}") }
    /// The engine's clock.
    pub fn now(&self) -> Millis { todo!() }
}
