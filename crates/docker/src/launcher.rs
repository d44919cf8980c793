//! The launcher: starts and stops the containers of workers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, StartContainerOptions,
    StopContainerOptionsBuilder,
};
use longshore_launch::{
    CodeFolders, InstallationId, LaunchError, LaunchEvent, LaunchFuture, Launcher, Limits, RunningWorker,
    StartInProgress, Starts, Volumes, WorkerFolders, WorkerLog, WorkerSpec, unenforced,
};
use longshore_model::{
    CodeHash, EndedWorker, EndpointId, Served, StartStage, StopReason, VolumeId, WorkerId,
};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

use crate::attend::{Attended, attend, remove};
use crate::code::{CodeCommand, DeployedCode};
use crate::container::Contents;
use crate::daemon::{Daemon, reason};
use crate::image::Image;
use crate::image_record::ImageRecord;
use crate::labels::Owner;
use crate::pulls::Pulls;
use crate::settings::DockerSettings;
use crate::{build, container, image, orphans, refusals};

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
    code: Option<DeployedCode>,
    worker_runtime: Option<PathBuf>,
    /// One build at a time: each holds the files of a folder in memory.
    builds: Semaphore,
    /// Whether the daemon limits the disk of a container, as far as its answers tell.
    limits_disk: AtomicBool,
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
    pub(crate) images: Arc<ImageRecord>,
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
            images: Arc::new(ImageRecord::at(dir.join("images.json"))),
            events: sender,
            connection: Mutex::default(),
            running: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            starts: Starts::default(),
            pulls: Pulls::default(),
            volumes: Volumes::at(volumes.to_owned()),
            code: None,
            worker_runtime: None,
            builds: Semaphore::new(1),
            limits_disk: AtomicBool::new(true),
            events: Mutex::new(Some(events)),
            tasks: Mutex::default(),
        }
    }

    /// Sets the folders of deployed code, and what runs the code in one of them. Containers see the folder as
    /// `/longshore/code`, and have a current folder with the same entries.
    #[must_use]
    pub fn with_code(mut self, folders: CodeFolders, command: Arc<CodeCommand>) -> Self {
        self.code = Some(DeployedCode { folders, command });
        self
    }

    /// Mounts the folder of the worker runtime into containers, at the front of their `PYTHONPATH`, except where their
    /// environment has `LONGSHORE_RUNTIME=off`.
    #[must_use]
    pub fn with_worker_runtime(mut self, folder: PathBuf) -> Self {
        self.worker_runtime = Some(std::path::absolute(&folder).unwrap_or(folder));
        self
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

    async fn start_one(&self, mut spec: WorkerSpec) -> Result<(), LaunchError> {
        let start = self.starts.begin(&spec.worker);
        let connection = self.shared.connection()?;
        if let Some(code) = &spec.code {
            let base = self.shared.settings.base_image.clone();
            spec.image = base.ok_or_else(|| LaunchError(refusals::of_code(code)))?;
        }
        let _needed = self.shared.images.need(&spec.image);
        let (daemon, settings) = (&connection.daemon, &self.shared.settings);
        let report = |stage| self.shared.report(&spec, stage);
        let image = tokio::select! {
            image = image::ensure(daemon, &self.pulls, &self.shared.images, settings, &spec, report) => image?,
            () = start.cancelled() => return Err(start.error()),
        };
        self.shared.report(&spec, StartStage::Creating);
        self.shared.note(&running(&spec))?;
        let name = connection.owner.container(spec.worker.as_str());
        let run = async {
            let contents = self.contents(&mut spec, image, daemon)?;
            self.run_container(&connection, &spec, contents, &name, &start).await
        };
        match run.await {
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

    /// What is put into the container of a worker. Sets the command of a `spec` with deployed code.
    fn contents(
        &self,
        spec: &mut WorkerSpec,
        image: Image,
        daemon: &Daemon,
    ) -> Result<Contents, LaunchError> {
        let dir = self.shared.folders.live(&spec.worker);
        let code = match (&spec.code, &self.code) {
            (None, _) => None,
            (Some(_), Some(code)) => Some(code.resolve(spec, &dir)?),
            (Some(code), None) => return Err(LaunchError(refusals::of_code(code))),
        };
        let limits_disk = daemon.may_limit_disk && self.limits_disk.load(Ordering::Relaxed);
        let disk_bytes = spec.disk_bytes.filter(|_| limits_disk);
        Ok(Contents { image, code, worker_runtime: self.worker_runtime.clone(), disk_bytes })
    }

    /// Creates a container, and returns its id. Creates it without a limit of its disk if the daemon cannot limit it.
    async fn create(
        &self,
        connection: &Connection,
        spec: &WorkerSpec,
        mut contents: Contents,
        name: &str,
    ) -> Result<String, Error> {
        let Connection { daemon, owner } = connection;
        loop {
            let body = container::body(spec, &contents, owner, daemon, &self.shared.settings, &self.volumes);
            let options = CreateContainerOptionsBuilder::new().name(name).build();
            match daemon.docker.create_container(Some(options), body).await {
                Err(error) if contents.disk_bytes.is_some() && reason(&error).contains("storage-opt") => {
                    let error = reason(&error);
                    tracing::warn!(
                        error,
                        "the Docker daemon does not limit disks, `containerDiskInGb` has no effect"
                    );
                    self.limits_disk.store(false, Ordering::Relaxed);
                    contents.disk_bytes = None;
                }
                created => return created.map(|created| created.id),
            }
        }
    }

    /// Creates and starts the container. After an error it may exist.
    async fn run_container(
        &self,
        connection: &Connection,
        spec: &WorkerSpec,
        contents: Contents,
        name: &str,
        start: &StartInProgress,
    ) -> Result<Attended, LaunchError> {
        let Connection { daemon, .. } = connection;
        let refused = |stage, error: &_| LaunchError(refusals::of_start(&spec.image, stage, &reason(error)));
        let created = self.create(connection, spec, contents, name).await;
        let id = created.map_err(|error| refused(StartStage::Creating, &error))?;
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

    /// Looks for containers that no server attends to, in the background, until the launcher is dropped.
    pub(crate) fn look_for_orphans(&self, connection: &Arc<Connection>) {
        let (shared, starts) = (Arc::clone(&self.shared), self.starts.clone());
        locked(&self.tasks).spawn(orphans::look_at_intervals(shared, starts, Arc::clone(connection)));
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

    /// Whether a container of this worker is attended to.
    pub(crate) fn attends(&self, worker: &WorkerId) -> bool {
        locked(&self.running).contains_key(worker)
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
    fn build_image<'a>(
        &'a self,
        image: &'a str,
        context: Vec<u8>,
        print: mpsc::Sender<String>,
    ) -> LaunchFuture<'a, String> {
        Box::pin(async move {
            let _turn = self.builds.acquire().await;
            let (connection, name) = (self.shared.connection()?, build::name_of(image));
            let network = &self.shared.settings.network;
            build::run(&connection, &name, network, context, &print).await?;
            self.shared.images.note_made(&name);
            Ok(name)
        })
    }

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

    fn shares_ports(&self) -> bool {
        self.shared.settings.is_host_network()
    }

    fn host_of(&self, worker: &WorkerId) -> LaunchFuture<'_, Option<IpAddr>> {
        let worker = worker.clone();
        Box::pin(async move {
            if self.shared.settings.is_host_network() {
                return Ok(Some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
            }
            let id = locked(&self.shared.running).get(&worker).map(|container| container.id.clone());
            let Some(id) = id else { return Ok(None) };
            let docker = self.shared.connection()?.daemon.docker.clone();
            let found = docker.inspect_container(&id, None::<InspectContainerOptions>).await;
            let found = found.map_err(|error| {
                LaunchError(format!("cannot read the address of worker {worker}: {}", reason(&error)))
            })?;
            let networks = found.network_settings.and_then(|settings| settings.networks).unwrap_or_default();
            Ok(networks.into_values().find_map(|network| network.ip_address?.parse().ok()))
        })
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

    fn make_volume(&self, volume: &VolumeId) -> LaunchFuture<'_, ()> {
        let (volumes, volume) = (self.volumes.clone(), *volume);
        Box::pin(async move {
            let made = spawn_blocking(move || volumes.make(&volume)).await;
            made.map_err(|error| LaunchError(error.to_string()))?
        })
    }

    fn finds_code(&self, code: &CodeHash) -> bool {
        self.code.as_ref().is_some_and(|here| here.folders.find(code).is_some())
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
