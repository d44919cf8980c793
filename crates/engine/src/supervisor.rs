//! Keeps the workers of one endpoint: as many as its load needs, of the present version. A stuck worker is replaced;
//! after a crash the next worker starts after a growing wait.
//!
//! There is one task per endpoint whose provider has a launcher. [`fleet_state`] and [`longshore_fleet`] decide without
//! waiting; [`reconcile`] observes, acts, and observes again. The supervisor stores nothing: after a restart its
//! launcher finds the workers again.

mod crash_series;
mod endpoint_api;
pub(crate) mod environment;
mod fleet_state;
mod http_ports;
mod reconcile;
mod start_patience;
mod start_times;
mod status;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use longshore_launch::{InstallationId, LaunchError, Launcher, RegistryLogin, RunningWorker, WorkerExit};
use longshore_model::{
    Endpoint, EndpointId, Gpu, Millis, SecretName, StartStage, StopReason, Template, WorkerId,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::capacity::Capacity;
use crate::gpu_pool::GpuPool;
use crate::runtime::Runtime;

pub(crate) use reconcile::stop;

pub use endpoint_api::EndpointApi;
pub use status::{FleetStatus, WorkerStatus};

/// An event for a supervisor.
#[derive(Debug)]
pub enum FleetEvent {
    /// The load or the workers changed. One event is enough until the next pass.
    Demand,
    /// A worker must be replaced: it is stuck in a stopped job, its lease expired, or it reported that it is unfit.
    Replace {
        /// The worker to stop; the next pass starts another one if the load needs it.
        worker: WorkerId,
        /// The cause, for the log and for `/health`.
        reason: String,
    },
    /// A worker no longer runs a stopped job, and ran no other job meanwhile. Processes that the worker started in this
    /// time belong to the stopped job.
    LetGo {
        /// The worker that ran the job.
        worker: WorkerId,
        /// When the worker took the job.
        since: Millis,
        /// When the worker no longer ran the job.
        until: Millis,
    },
    /// A worker requested its replacement, or an operator drains it. Its running jobs may finish.
    Drain {
        /// The worker to drain.
        worker: WorkerId,
        /// Why it is drained.
        reason: StopReason,
    },
    /// An operator stops a worker: its running jobs are requeued without counting a retry, unless they end before the
    /// stop grace is over.
    Stop {
        /// The worker to stop; the next pass starts another one if the load needs it.
        worker: WorkerId,
    },
    /// An operator ends the wait after crashes: the next pass starts a worker if the load needs it.
    TryNow,
    /// The start of a worker has reached a stage.
    Stage {
        /// The worker that is being started.
        worker: WorkerId,
        /// What the launcher does.
        stage: StartStage,
    },
    /// A worker's machine does not answer.
    Away {
        /// The worker, which counts as none until its machine is back.
        worker: WorkerId,
        /// The machine's name.
        machine: String,
    },
    /// A worker's machine answers again.
    Back {
        /// The worker whose machine is back.
        worker: WorkerId,
    },
    /// A worker of the endpoint exited.
    Exited(WorkerExit),
    /// The endpoint or its template changed.
    Configured,
    /// The endpoint is deleted: its workers are stopped, then the task ends.
    Deleted {
        /// Whether running jobs may finish first.
        drain: bool,
    },
    /// The endpoint has another provider: its workers of this one are drained and stopped, then the task ends.
    ProviderChanged,
    /// The server stops: the task ends, the workers keep running.
    Shutdown,
}

/// The settings of workers, shared by all supervisors.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// Base URL under which workers reach this server, as `http://127.0.0.1:8080`.
    pub base_url: String,
    /// Interval of a worker's pings, in ms. Workers get at least 1000: the SDK's pings fail below that.
    pub ping_interval_ms: u64,
    /// Time from SIGTERM to SIGKILL for a drained worker, in ms; an endpoint's `stopGraceMs` has priority.
    pub stop_grace_ms: u64,
    /// Time from SIGTERM to SIGKILL for a worker that is replaced, in ms.
    pub kill_grace_ms: u64,
    /// The computer's GPUs, which are assigned to workers. Empty: workers start without a GPU placement.
    pub gpus: Vec<Gpu>,
    /// What all workers may have together.
    pub capacity: Capacity,
    /// The name of this computer, which no other one has that runs workers of this installation.
    pub machine: String,
    /// How long workers go on without a server, in ms; `None` for no limit.
    pub orphan_ms: Option<u64>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8080".to_owned(),
            ping_interval_ms: 5_000,
            stop_grace_ms: 10_000,
            kill_grace_ms: 5_000,
            gpus: Vec::new(),
            capacity: Capacity::default(),
            machine: "local".to_owned(),
            orphan_ms: Some(600_000),
        }
    }
}

impl WorkerSettings {
    /// Returns the stop grace of a drained worker of this endpoint; `None`: the endpoint is deleted.
    pub(crate) fn stop_grace(&self, endpoint: Option<&Endpoint>) -> Duration {
        Duration::from_millis(endpoint.and_then(|it| it.stop_grace_ms).unwrap_or(self.stop_grace_ms))
    }

    /// Returns the stop grace of a worker that is replaced.
    fn kill_grace(&self) -> Duration {
        Duration::from_millis(self.kill_grace_ms)
    }
}

/// Returns the present value of a secret; `None` if the secret does not exist.
pub(crate) type SecretLookup = dyn Fn(&SecretName) -> Option<String> + Send + Sync;

/// Makes the token of a managed worker.
pub(crate) type TokenMaker = dyn Fn(&WorkerId) -> String + Send + Sync;

/// Returns the login of registry credentials; `None` if they do not exist.
pub(crate) type LoginLookup = dyn Fn(&str) -> Option<RegistryLogin> + Send + Sync;

/// Everything that a supervisor is made of.
pub struct SupervisorParts<P> {
    /// The endpoint and its queue.
    pub endpoint_api: P,
    /// Returns the present template of the endpoint; `None` if it is deleted.
    pub template: Box<dyn Fn() -> Option<Arc<Template>> + Send + Sync>,
    /// Finds the values of the secrets that the template names.
    pub secret: Box<SecretLookup>,
    /// Finds the login for the registry of the template's image.
    pub login: Box<LoginLookup>,
    /// Runs the workers: the launcher of the endpoint's provider.
    pub launcher: Arc<dyn Launcher>,
    /// The GPUs of the computer that runs the workers.
    pub(crate) gpu_pool: Arc<GpuPool>,
    /// The settings of workers.
    pub settings: WorkerSettings,
    /// Makes the token of a worker. A secret.
    pub token: Box<TokenMaker>,
    /// Runs the supervisor's task, and is the source of entropy for worker ids.
    pub runtime: Arc<dyn Runtime>,
    /// The endpoint's running workers that an earlier server started; found by [`adopt`].
    pub adopted: Vec<RunningWorker>,
    /// Whether adopted workers that do not say with which base URL of this server they were started were started with
    /// another one than the present one.
    pub moved: bool,
}

/// The task of a running supervisor, and its status.
pub struct SupervisorHandle {
    /// Ends immediately after [`FleetEvent::Shutdown`], and after [`FleetEvent::Deleted`] or
    /// [`FleetEvent::ProviderChanged`] when the last worker has exited.
    pub task: JoinHandle<()>,
    /// The latest status, published after each pass.
    pub status: watch::Receiver<FleetStatus>,
}

impl<P: EndpointApi> SupervisorParts<P> {
    /// Returns the base URL under which the workers of the launcher reach this server.
    fn server_url(&self) -> &str {
        self.launcher.server_url().unwrap_or(&self.settings.base_url)
    }

    /// Returns whether a worker was started with another base URL of this server than the present one.
    fn has_moved(&self, worker: &RunningWorker) -> bool {
        worker.server_url.as_ref().map_or(self.moved, |told| told != self.server_url())
    }

    /// Starts the supervisor's task.
    pub fn spawn(self, events: mpsc::UnboundedReceiver<FleetEvent>) -> SupervisorHandle {
        let (publish, status) = watch::channel(FleetStatus::default());
        let runtime = Arc::clone(&self.runtime);
        SupervisorHandle {
            task: runtime.spawn(Box::pin(reconcile::Supervisor::new(self, publish).run(events))),
            status,
        }
    }
}

/// Returns the workers of one provider that an earlier server left running, by endpoint.
///
/// Workers whose endpoint is not `is_known` are stopped in the background. Every found worker holds its GPUs until it
/// exits. Called once per launcher, before the first supervisor of its provider starts.
///
/// # Errors
///
/// The launcher could not list its workers; no worker is adopted.
pub(crate) async fn adopt(
    launcher: &Arc<dyn Launcher>,
    installation: InstallationId,
    gpus: &GpuPool,
    runtime: &dyn Runtime,
    settings: &WorkerSettings,
    is_known: impl Fn(&EndpointId) -> bool,
) -> Result<HashMap<EndpointId, Vec<RunningWorker>>, LaunchError> {
    let mut adopted: HashMap<EndpointId, Vec<RunningWorker>> = HashMap::new();
    for found in launcher.adopt(installation).await? {
        gpus.hold(found.endpoint, &found.worker, &found.placement.gpus);
        let RunningWorker { worker, endpoint, is_stopping, .. } = &found;
        if is_known(endpoint) {
            tracing::info!(%worker, %endpoint, "worker adopted");
            adopted.entry(*endpoint).or_default().push(found);
            continue;
        }
        if *is_stopping {
            continue;
        }
        tracing::info!(%worker, %endpoint, "stopping worker of unknown endpoint");
        let (launcher, grace) = (Arc::clone(launcher), settings.stop_grace(None));
        runtime.spawn(Box::pin(async move {
            reconcile::stop(&*launcher, &found.worker, grace, &StopReason::EndpointDeleted).await;
        }));
    }
    Ok(adopted)
}
