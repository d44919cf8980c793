//! The worker of a job's present or last attempt: one that runs, or one that has ended.

use longshore_model::{EndedWorker, JobRow, Millis, Placement, WorkerId};
use tokio::task::spawn_blocking;

use crate::gate::call::Call;
use crate::wire::api_error::ApiError;

/// What is known of the worker.
pub(super) struct JobWorker {
    /// The version of the endpoint that it was started for; `None` if that is unknown.
    pub(super) version: Option<u32>,
    /// Its GPUs, and when it was started.
    pub(super) placement: Placement,
    /// When it asked for a job first; `None` if that is unknown.
    pub(super) ready_at: Option<Millis>,
}

impl JobWorker {
    /// The worker of the job, if it runs and the server has started it.
    pub(super) fn running(call: &Call, row: &JobRow) -> Option<Self> {
        let status = call.endpoint.workers().fleet_status();
        let worker = status.workers.iter().find(|worker| Some(&worker.id) == row.worker.as_ref())?;
        let (placement, ready_at) = (worker.placement.clone(), worker.ready_at);
        Some(Self { version: Some(worker.version), placement, ready_at })
    }

    /// The ended worker with this id; `None` if the server did not start it, and once its log is no longer stored. `read` reads
    /// the ended workers of the endpoint from the disk.
    ///
    /// # Errors
    ///
    /// The task that reads the disk was cancelled.
    pub(super) async fn ended(
        id: WorkerId,
        read: impl FnOnce() -> Vec<EndedWorker> + Send + 'static,
    ) -> Result<Option<Self>, ApiError> {
        let found = spawn_blocking(move || read().into_iter().find(|one| one.worker == id));
        let ended = found.await.map_err(|_| ApiError::internal())?;
        Ok(ended.map(|ended| Self {
            version: Some(ended.version).filter(|version| *version > 0),
            placement: ended.placement,
            ready_at: ended.served.and_then(|served| served.ready_at),
        }))
    }
}
