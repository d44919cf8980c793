//! Keeps the workers of one endpoint: as many as its load needs, of the present version. A worker that hangs is
//! replaced; one that crashes is restarted after a growing wait.
//!
//! There is one task per endpoint whose provider has a launcher. [`fleet_state`] and [`longshore_fleet`] decide without
//! waiting; [`reconcile`] observes, acts, and observes again. The supervisor stores nothing: its launcher finds the workers
//! again after a restart.

mod endpoint_api;
pub(crate) mod environment;
mod fleet_state;
mod reconcile;
mod status;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_launch::{LaunchError, Launcher, RunningWorker, WorkerExit};
use longshore_model::{Endpoint, EndpointId, Gpu, Millis, Template, WorkerId};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::gpu_pool::GpuPool;
use crate::runtime::Runtime;

pub use endpoint_api::EndpointApi;
pub use status::{FleetStatus, WorkerStatus};

/// What a supervisor hears.
#[derive(Debug)]
pub enum FleetEvent {
    /// Load or workers changed. One is enough until the supervisor has looked.
    Demand,
    /// A worker must be replaced: it did not let go of a stopped job, was silent, or said that it is unfit.
    Replace {
        /// Which.
        worker: WorkerId,
        /// Why.
        reason: String,
    },
    /// A worker has let go of a stopped job. It had no other one in between.
    LetGo {
        /// Which.
        worker: WorkerId,
        /// When it got the job.
        since: Millis,
        /// When it let go.
        until: Millis,
    },
    /// A worker asked to be replaced. Its running jobs may finish.
    Refresh {
        /// Which.
        worker: WorkerId,
    },
    /// A worker ended.
    Exited(WorkerExit),
    /// The endpoint's record or template changed.
    Configured,
    /// The endpoint is deleted: end its workers, then the task.
    Deleted {
        /// Let running jobs finish.
        drain: bool,
    },
    /// The endpoint has another provider: its workers at this one finish their jobs and end, then the task ends.
    ProviderChanged,
    /// The server stops; workers go on.
    Shutdown,
}

/// What every supervisor goes by.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Where workers reach this server, as `http://127.0.0.1:8080`.
    pub base_url: String,
    /// How often they ping; at least 1000, or the SDK's pings fail.
    pub ping_interval_ms: u64,
    /// How long a drained worker may take to end by itself, where its endpoint does not say.
    pub stop_grace_ms: u64,
    /// The same for one that hangs.
    pub kill_grace_ms: u64,
    /// The machine's GPUs, to be shared out among the workers. None: workers start without regard to any.
    pub gpus: Vec<Gpu>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8080".to_owned(),
            ping_interval_ms: 5_000,
            stop_grace_ms: 10_000,
            kill_grace_ms: 5_000,
            gpus: Vec::new(),
        }
    }
}

impl WorkerSettings {
    /// How long a drained worker of this endpoint may take; of none: one of an endpoint that is gone.
    fn stop_grace(&self, endpoint: Option<&Endpoint>) -> Duration {
        Duration::from_millis(endpoint.and_then(|it| it.stop_grace_ms).unwrap_or(self.stop_grace_ms))
    }

    fn kill_grace(&self) -> Duration {
        Duration::from_millis(self.kill_grace_ms)
    }
}

/// The parts that a supervisor works with.
pub struct SupervisorParts<P> {
    /// The endpoint.
    pub endpoint_api: P,
    /// Reads the template that the endpoint uses now.
    pub template: Box<dyn Fn() -> Option<Arc<Template>> + Send + Sync>,
    /// Runs the workers: the launcher of the endpoint's provider.
    pub launcher: Arc<dyn Launcher>,
    /// The GPUs of the machine that runs them.
    pub(crate) gpu_pool: Arc<GpuPool>,
    /// What every supervisor goes by.
    pub settings: WorkerSettings,
    /// What the endpoint's workers authenticate with. A secret.
    pub token: String,
    /// Runs the supervisor, and makes the workers' ids.
    pub runtime: Arc<dyn Runtime>,
    /// The endpoint's workers that an earlier server started; see [`adopt`].
    pub adopted: Vec<RunningWorker>,
    /// Those were started for another address of this server than the present one.
    pub moved: bool,
}

/// A supervisor that runs.
pub struct SupervisorHandle {
    /// Ends after [`FleetEvent::Shutdown`] at once, and after [`FleetEvent::Deleted`] or
    /// [`FleetEvent::ProviderChanged`] when the last worker is gone.
    pub task: JoinHandle<()>,
    /// What it knows of the workers beyond what their queue does.
    pub status: watch::Receiver<FleetStatus>,
}

impl<P: EndpointApi> SupervisorParts<P> {
    /// Begins to keep the endpoint's workers.
    pub fn spawn(self, events: mpsc::UnboundedReceiver<FleetEvent>) -> SupervisorHandle {
        let (publish, status) = watch::channel(FleetStatus::default());
        let host = Arc::clone(&self.runtime);
        SupervisorHandle {
            task: host.spawn(Box::pin(reconcile::Supervisor::new(self, publish).run(events))),
            status,
        }
    }
}

/// Finds the workers that an earlier server left running at one provider, by endpoint. Those of endpoints that `is_known`
/// does not know are stopped in the background. All of them keep their GPUs until they end. Called once per launcher,
/// before the first supervisor of its provider begins.
pub(crate) async fn adopt(
    launcher: &Arc<dyn Launcher>,
    gpus: &GpuPool,
    host: &dyn Runtime,
    settings: &WorkerSettings,
    is_known: impl Fn(&EndpointId) -> bool,
) -> Result<HashMap<EndpointId, Vec<RunningWorker>>, LaunchError> {
    let mut adopted: HashMap<EndpointId, Vec<RunningWorker>> = HashMap::new();
    for present in launcher.adopt().await? {
        gpus.hold(&present.worker, &present.placement.gpus);
        if is_known(&present.endpoint) {
            tracing::info!(worker = %present.worker, endpoint = %present.endpoint, "adopted a worker");
            adopted.entry(present.endpoint).or_default().push(present);
            continue;
        }
        if present.is_stopping {
            continue;
        }
        tracing::info!(worker = %present.worker, endpoint = %present.endpoint, "stopping a worker of an endpoint that is gone");
        let (launcher, grace) = (Arc::clone(launcher), settings.stop_grace(None));
        host.spawn(Box::pin(async move { reconcile::stop(&*launcher, &present.worker, grace).await }));
    }
    Ok(adopted)
}
