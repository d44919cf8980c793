//! The launcher: starts and stops the containers of workers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, StartContainerOptions, StopContainerOptionsBuilder,
};
use longshore_launch::{
    InstallationId, LaunchError, LaunchEvent, LaunchFuture, Launcher, Limits, RunningWorker, StartInProgress,
    Starts, Volumes, WorkerFolders, WorkerLog, WorkerSpec, unenforced,
};
use longshore_model::{EndedWorker, EndpointId, Served, StartStage, StopReason, WorkerId};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

use crate::attend::{Attended, attend, remove};
use crate::daemon::{Daemon, reason};
use crate::labels::Owner;
use crate::pulls::Pulls;
use crate::settings::DockerSettings;
use crate::{container, image, refusals};

/// The stop grace of a worker that an earlier server was stopping.
const GRACE_LEFT: Duration = Duration::from_secs(3);
/// How long a killed container may take to exit, and the daemon to say so.
const KILL_WAIT: Duration = Duration::from_secs(30);
/// The pause between two tries to stop a container while the daemon does not answer.
const STOP_AGAIN_IN: Duration = Duration::from_secs(2);

/// Runs workers as containers of one daemon.
///
/// After a drop the containers go on. A new launcher on the same folder [adopts](Launcher::adopt) them.
pub struct DockerLauncher {
    pub(crate) shared: Arc<Shared>,
    starts: Starts,
    pulls: Pulls,
    volumes: Volumes,
    events: Mutex<Option<mpsc::UnboundedReceiver<LaunchEvent>>>,
    /// One task per container; the tasks end with the launcher.
    tasks: Mutex<JoinSet<()>>,
}

/// The daemon, and the identity under which its containers are ours.
pub(crate) struct Connection {
    pub(crate) daemon: Daemon,
    pub(crate) owner: Owner,
}

/// The state that the launcher shares with its tasks.
pub(crate) struct Shared {
    pub(crate) settings: DockerSettings,
    pub(crate) folders: WorkerFolders,
    pub(crate) events: mpsc::UnboundedSender<LaunchEvent>,
    /// `None` before the adoption.
    connection: Mutex<Option<Arc<Connection>>>,
    running: Mutex<HashMap<WorkerId, RunningContainer>>,
}

/// A container that runs, or whose exit is being handled.
#[derive(Clone)]
struct RunningContainer {
    id: String,
    is_gone: watch::Receiver<bool>,
}

impl DockerLauncher {
    /// A launcher that stores the logs of workers in `dir`, and finds the directories of network volumes in `volumes`. Only
    /// one launcher at a time may use `dir`.
    pub fn new(dir: &Path, volumes: &Path, settings: DockerSettings) -> Self {
        // Bounded by the number of workers: each sends one exit and a few stages.
        let (sender, events) = mpsc::unbounded_channel();
        let shared = Shared {
            settings,
            folders: WorkerFolders::at(dir),
            events: sender,
            connection: Mutex::default(),
            running: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            starts: Starts::default(),
            pulls: Pulls::default(),
            volumes: Volumes::at(volumes.to_owned()),
            events: Mutex::new(Some(events)),
            tasks: Mutex::default(),
        }
    }

    /// Refuses an address of the server that containers cannot reach.
    pub(crate) fn check_address(&self) -> Result<(), LaunchError> {
        let DockerSettings { network, server_url, .. } = &self.shared.settings;
        let is_own = |url: &str| {
            let host = url.split_once("://").map_or(url, |(_, rest)| rest);
            host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]")
        };
        if self.shared.settings.is_host_network() || server_url.as_deref().is_some_and(|url| !is_own(url)) {
            return Ok(());
        }
        Err(LaunchError(format!(
            "containers in the network `{network}` need an address of this server that they reach; set `server_url` in \
             [docker], for example to http://host.docker.internal:8080"
        )))
    }

    async fn start_one(&self, spec: WorkerSpec) -> Result<(), LaunchError> {
        let start = self.starts.begin(&spec.worker);
        let connection = self.shared.connection()?;
        if let Some(code) = &spec.code {
            return Err(LaunchError(refusals::of_code(code)));
        }
        let report = |stage| self.shared.report(&spec, stage);
        let (daemon, settings) = (&connection.daemon, &self.shared.settings);
        let image = tokio::select! {
            image = image::ensure(daemon, &self.pulls, settings, &spec, report) => image?,
            () = start.cancelled() => return Err(start.error()),
        };
        report(StartStage::Creating);
        self.shared.note(&running(&spec))?;
        let name = connection.owner.container(spec.worker.as_str());
        match self.run_container(&connection, &spec, image, &name, &start).await {
            Ok(attended) => {
                self.attend(&connection, attended);
                Ok(())
            }
            Err(error) => {
                // The daemon may have created it although its response was lost.
                remove(daemon, &name).await;
                self.shared.folders.live(&spec.worker).remove_quietly();
                Err(error)
            }
        }
    }

    /// Creates and starts the container. After an error it may exist.
    async fn run_container(
        &self,
        connection: &Connection,
        spec: &WorkerSpec,
        image: String,
        name: &str,
        start: &StartInProgress,
    ) -> Result<Attended, LaunchError> {
        let Connection { daemon, owner } = connection;
        let refused = |stage, error: &_| LaunchError(refusals::of_start(&spec.image, stage, &reason(error)));
        let body = container::body(spec, image, owner, daemon, &self.shared.settings, &self.volumes);
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        let created = daemon.docker.create_container(Some(options), body).await;
        let id = created.map_err(|error| refused(StartStage::Creating, &error))?.id;
        if start.is_cancelled() {
            return Err(start.error());
        }
        self.shared.report(spec, StartStage::Starting);
        let started = daemon.docker.start_container(&id, None::<StartContainerOptions>).await;
        started.map_err(|error| refused(StartStage::Starting, &error))?;
        Ok(Attended {
            worker: running(spec),
            id,
            memory_bytes: spec.limits.memory_bytes,
            since: Instant::now(),
        })
    }

    /// Attends to a container in the background.
    pub(crate) fn attend(&self, connection: &Arc<Connection>, attended: Attended) {
        let (gone, is_gone) = watch::channel(false);
        let worker = attended.worker.worker.clone();
        let entry = RunningContainer { id: attended.id.clone(), is_gone };
        locked(&self.shared.running).insert(worker.clone(), entry);
        let (shared, connection) = (Arc::clone(&self.shared), Arc::clone(connection));
        let mut tasks = locked(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            attend(&shared, &connection.daemon, attended).await;
            locked(&shared.running).remove(&worker);
            // No call of `stop` may be waiting.
            let _ = gone.send(true);
        });
    }

    /// Stops a worker that an earlier server was stopping.
    pub(crate) fn finish_stopping(&self, worker: &WorkerId) {
        let (shared, worker) = (Arc::clone(&self.shared), worker.clone());
        tokio::spawn(async move {
            if let Err(error) = shared.stop(&worker, GRACE_LEFT).await {
                tracing::error!(%worker, %error, "a worker could not be stopped");
            }
        });
    }
}

impl Shared {
    /// The daemon that answered the adoption.
    fn connection(&self) -> Result<Arc<Connection>, LaunchError> {
        let connection = locked(&self.connection).clone();
        connection.ok_or_else(|| LaunchError("the Docker daemon has not answered yet".to_owned()))
    }

    pub(crate) fn set_connection(&self, connection: Arc<Connection>) {
        *locked(&self.connection) = Some(connection);
    }

    /// Makes the folder of a worker, with the note of what it is.
    pub(crate) fn note(&self, worker: &RunningWorker) -> Result<(), LaunchError> {
        self.folders.note(worker).map_err(|error| {
            LaunchError(format!("worker {} was not started: cannot make its folder: {error}", worker.worker))
        })
    }

    fn report(&self, spec: &WorkerSpec, stage: StartStage) {
        let (worker, endpoint) = (spec.worker.clone(), spec.endpoint);
        // A dropped receiver means that the engine is gone.
        let _ = self.events.send(LaunchEvent::Stage { worker, endpoint, stage });
    }

    /// Stops a container with its own stop signal, and kills it after `grace`. Tries again while the daemon is away.
    async fn stop(&self, worker: &WorkerId, grace: Duration) -> Result<(), LaunchError> {
        let Some(RunningContainer { id, is_gone }) = locked(&self.running).get(worker).cloned() else {
            return Ok(());
        };
        let mut docker = self.connection()?.daemon.docker.clone();
        // The daemon answers when the container has exited.
        docker.set_timeout(grace + KILL_WAIT);
        let options = StopContainerOptionsBuilder::new().t(grace.as_secs_f64().ceil() as i32).build();
        loop {
            match docker.stop_container(&id, Some(options.clone())).await {
                Ok(()) | Err(Error::RequestTimeoutError) => break,
                Err(_) if *is_gone.borrow() => break,
                // The daemon is away; the container may go on meanwhile.
                Err(_) => sleep(STOP_AGAIN_IN).await,
            }
        }
        let mut is_gone = is_gone;
        // An inner error means that the launcher is being dropped.
        let gone = timeout(KILL_WAIT, is_gone.wait_for(|gone| *gone)).await;
        gone.map(drop).map_err(|_| {
            LaunchError(format!(
                "worker {worker} was killed but did not vanish; look for its container with docker ps"
            ))
        })
    }
}

impl Launcher for DockerLauncher {
    fn adopt(&self, installation: InstallationId) -> LaunchFuture<'_, Vec<RunningWorker>> {
        Box::pin(self.adopt_all(installation))
    }

    fn server_url(&self) -> Option<&str> {
        self.shared.settings.server_url.as_deref()
    }

    fn unenforced(&self, limits: &Limits) -> Option<String> {
        let (memory, cpu) = self.shared.connection().map_or((true, true), |it| it.daemon.enforces);
        let why =
            |enforced: bool| (!enforced).then_some("the Docker daemon cannot limit it on this computer");
        unenforced(limits, why(memory), why(cpu))
    }

    fn start(&self, spec: WorkerSpec) -> LaunchFuture<'_, ()> {
        Box::pin(self.start_one(spec))
    }

    fn stop(&self, worker: &WorkerId, grace: Duration, reason: &StopReason) -> LaunchFuture<'_, ()> {
        let (worker, reason) = (worker.clone(), reason.clone());
        Box::pin(async move {
            self.starts.cancel(&worker).await;
            // The note comes first, so that the next server goes on stopping the worker.
            self.shared.folders.live(&worker).note_stopping(&reason);
            self.shared.stop(&worker, grace).await
        })
    }

    fn events(&self) -> Option<mpsc::UnboundedReceiver<LaunchEvent>> {
        locked(&self.events).take()
    }

    fn note_served(&self, endpoint: &EndpointId, worker: &WorkerId, served: Served) -> LaunchFuture<'_, ()> {
        let (folders, endpoint, worker) = (self.shared.folders.clone(), *endpoint, worker.clone());
        Box::pin(async move {
            let noted = spawn_blocking(move || folders.note_served(&endpoint, &worker, &served)).await;
            noted.map_err(|error| LaunchError(error.to_string()))?
        })
    }

    fn forget(&self, endpoint: &EndpointId) -> LaunchFuture<'_, ()> {
        let (folders, endpoint) = (self.shared.folders.clone(), *endpoint);
        Box::pin(async move {
            let removed = spawn_blocking(move || folders.remove_ended(&endpoint)).await;
            removed.map_err(|error| LaunchError(error.to_string()))?
        })
    }

    fn worker_log(&self, endpoint: &EndpointId, worker: &WorkerId) -> Option<WorkerLog> {
        self.shared.folders.worker_log(endpoint, worker)
    }

    fn ended_workers(&self, endpoint: &EndpointId) -> Vec<EndedWorker> {
        self.shared.folders.ended_workers(endpoint)
    }

    fn worker_logs(&self) -> Vec<WorkerLog> {
        self.shared.folders.worker_logs()
    }
}

/// The worker of a spec, once it runs.
fn running(spec: &WorkerSpec) -> RunningWorker {
    RunningWorker {
        worker: spec.worker.clone(),
        endpoint: spec.endpoint,
        version: spec.version,
        is_stopping: false,
        placement: spec.placement.clone(),
        server_url: Some(spec.server_url.clone()),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
