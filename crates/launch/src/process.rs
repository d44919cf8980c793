//! Workers as processes of this computer, each under a [`crate::shim`].

mod exit;
mod leftovers;
mod spawn;
mod usage;
mod warm;
pub(crate) mod watch;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_model::{
    CodeHash, EndedWorker, EndpointId, Served, StartStage, StopReason, VolumeId, WorkerId,
};
use rustix::process::Signal;
use tokio::sync::{OnceCell, mpsc, watch as condition};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::cgroup::{CgroupBase, Cgroups};
use crate::code::{CodeFolders, DeployedCode};
use crate::presence;
use crate::proc::ProcessId;
use crate::python_path;
use crate::shim::Care;
use crate::visible_gpus::set_visible_gpus;
use crate::volumes::Volumes;
use crate::worker_dir::{WorkerDir, WorkerNote};
use crate::worker_folders::WorkerFolders;
use crate::zygote::{Recipe, Zygotes};
use crate::{
    Born, InstallationId, LaunchError, LaunchEvent, LaunchFuture, Launcher, Limits, RotationLimits,
    RunningWorker, Starts, WorkerLog, WorkerSpec, WorkerUsage, unenforced,
};
use spawn::{Source, Started};
use warm::Outcome;

/// The command of a shim. The worker's folder is added as the last argument.
#[derive(Clone, Debug)]
pub struct ShimCommand {
    /// The path of the program.
    pub program: PathBuf,
    /// The arguments before the worker's folder.
    pub arguments: Vec<OsString>,
    /// What process lists show in place of the program's path; `None`: the path.
    pub shown_as: Option<OsString>,
}

impl ShimCommand {
    /// The running program with a subcommand, even if an upgrade has replaced its file.
    pub fn this_program(subcommand: &str) -> Self {
        Self {
            program: "/proc/self/exe".into(),
            arguments: vec![subcommand.into()],
            shown_as: std::env::args_os().next(),
        }
    }
}

/// The stop grace of a worker that an earlier server was stopping.
const GRACE_LEFT: Duration = Duration::from_secs(3);
/// How long a killed worker may take to exit.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// Why limits of workers are not enforced without cgroups.
const NO_CGROUPS: &str = "the server has no cgroup v2 to divide (`longshore doctor` says more)";
/// How long workers go on without a server by default.
const ORPHANS_ENDED_AFTER: Duration = Duration::from_mins(10);

/// Runs workers as processes of this computer.
///
/// After a drop the workers go on. A new launcher on the same folder [adopts](Launcher::adopt) them.
pub struct ProcessLauncher {
    shared: Arc<LauncherShared>,
    shim: ShimCommand,
    care: Care,
    volumes: Volumes,
    code: Option<DeployedCode>,
    worker_runtime: Option<PathBuf>,
    cgroup_base: Option<CgroupBase>,
    cgroups: OnceCell<Option<Cgroups>>,
    events: Mutex<Option<mpsc::UnboundedReceiver<LaunchEvent>>>,
    starts: Starts,
    /// One task per worker; the tasks end with the launcher.
    watches: Mutex<JoinSet<()>>,
    /// The lock by which shims see that this server runs; `None` if it could not be taken.
    presence: OnceCell<Option<File>>,
}

/// The state that the launcher shares with its tasks.
struct LauncherShared {
    folders: WorkerFolders,
    running: Mutex<HashMap<WorkerId, WatchedWorker>>,
    clocks: Mutex<leftovers::ClockReadings>,
    usage: Mutex<usage::UsageReadings>,
    events: mpsc::UnboundedSender<LaunchEvent>,
    zygotes: Arc<Zygotes>,
}

/// A worker that runs, or whose exit is being handled.
#[derive(Clone)]
struct WatchedWorker {
    state: WorkerNote,
    gone: condition::Receiver<bool>,
    /// Of which zygotes the worker is a fork; `None` of none.
    forked_for: Option<Arc<Recipe>>,
}

impl ProcessLauncher {
    /// A launcher that stores the workers' folders in `dir`. Only one launcher at a time may use `dir`.
    pub fn new(dir: PathBuf, shim: ShimCommand) -> Self {
        let dir = std::path::absolute(&dir).unwrap_or(dir);
        let volumes = Volumes::at(dir.join("volumes"));
        // Bounded by the number of workers: each sends one exit, and the receiver never waits between two.
        let (sender, events) = mpsc::unbounded_channel();
        let care = Care {
            log: RotationLimits::default(),
            presence: dir.join("server.lock"),
            orphans_ended_after: Some(ORPHANS_ENDED_AFTER),
        };
        Self {
            shared: Arc::new(LauncherShared {
                folders: WorkerFolders::at(&dir),
                running: Mutex::default(),
                clocks: Mutex::default(),
                usage: Mutex::default(),
                events: sender,
                zygotes: Arc::default(),
            }),
            shim,
            care,
            volumes,
            code: None,
            worker_runtime: None,
            cgroup_base: None,
            cgroups: OnceCell::new(),
            events: Mutex::new(Some(events)),
            starts: Starts::default(),
            watches: Mutex::default(),
            presence: OnceCell::new(),
        }
    }

    /// Takes the lock by which shims see that this server runs. The drop of the launcher releases the lock.
    async fn appear(&self) {
        let held = self.presence.get_or_init(async || {
            let path = self.care.presence.clone();
            let held = in_background(move || presence::hold(&path)).await;
            held.map_err(|error| error.to_string()).and_then(|held| held.map_err(|error| error.to_string())).inspect_err(
                |error| tracing::error!(%error, path = %self.care.presence.display(), "workers will take this server for gone"),
            ).ok()
        });
        held.await;
    }

    /// Sets the limits for the logs of workers that are started from now on.
    #[must_use]
    pub fn with_log_limits(mut self, log_limits: RotationLimits) -> Self {
        self.care.log = log_limits;
        self
    }

    /// Sets how long workers that are started from now on go on without a server; `None`: without end.
    #[must_use]
    pub fn with_orphans_ended_after(mut self, after: Option<Duration>) -> Self {
        self.care.orphans_ended_after = after;
        self
    }

    /// Puts the directories of network volumes into `dir`. The default is `volumes` in the workers' folder.
    #[must_use]
    pub fn with_volumes(mut self, dir: PathBuf) -> Self {
        self.volumes = Volumes::at(dir);
        self
    }

    /// Sets the folders of deployed code, and the command line `runner` that runs a folder whose path is added to it.
    #[must_use]
    pub fn with_code(mut self, folders: CodeFolders, runner: Vec<String>) -> Self {
        self.code = Some(DeployedCode { folders, runner });
        self
    }

    /// Puts the folder of the worker runtime at the front of the `PYTHONPATH` of workers that are started from now on, except
    /// where their environment has `LONGSHORE_RUNTIME=off`.
    #[must_use]
    pub fn with_worker_runtime(mut self, folder: PathBuf) -> Self {
        self.worker_runtime = Some(folder);
        self
    }

    /// Starts workers as forks of processes that have imported what their handlers import, where their specs allow it. There
    /// are at most `max` such processes. Needs the worker runtime.
    #[must_use]
    pub fn with_zygotes(self, max: usize) -> Self {
        self.shared.zygotes.set_max(max);
        self
    }

    /// Creates a cgroup in `base` for each worker that is started from now on.
    #[must_use]
    pub fn with_cgroups(mut self, base: CgroupBase) -> Self {
        self.cgroup_base = Some(base);
        self
    }

    /// The workers' cgroups; `None` without a base, or if the base cannot be divided.
    async fn cgroups(&self) -> Option<&Cgroups> {
        let made = self.cgroups.get_or_init(async || {
            let (base, workers) = (self.cgroup_base.clone()?, self.shared.folders.path().to_owned());
            let made = in_background(move || Cgroups::prepare(&base, &workers)).await;
            made.map_err(|error| error.to_string())
                .and_then(|made| made.map_err(|error| error.to_string()))
                .inspect_err(|error| tracing::error!(%error, "workers have no cgroups of their own"))
                .ok()
        });
        made.await.as_ref()
    }

    /// Ends the cgroups of workers without a shim.
    async fn end_left_cgroups(&self, present: &[RunningWorker]) -> Result<(), LaunchError> {
        let Some(cgroups) = self.cgroups().await.cloned() else { return Ok(()) };
        let watched: Vec<String> = present.iter().map(|one| one.worker.to_string()).collect();
        in_background(move || {
            for (worker, leaf) in cgroups.leaves().into_iter().filter(|(worker, _)| !watched.contains(worker))
            {
                match leaf.end() {
                    Ok(()) => tracing::info!(%worker, "ended what was left in the cgroup of a worker"),
                    Err(error) => tracing::error!(%worker, %error, "the cgroup of a worker is left over"),
                }
            }
        })
        .await
    }

    fn watch(
        &self,
        state: WorkerNote,
        shim: watch::WatchedShim,
        forked_for: Option<Arc<Recipe>>,
    ) -> condition::Receiver<bool> {
        let (gone, is_gone) = condition::channel(false);
        let worker = state.worker.clone();
        let present = WatchedWorker { state: state.clone(), gone: is_gone.clone(), forked_for };
        locked(&self.shared.running).insert(worker, present);
        let shared = self.shared.clone();
        let mut watches = locked(&self.watches);
        while watches.try_join_next().is_some() {}
        watches.spawn(async move {
            shim.ended().await;
            let left = shared.handle_end(state).await;
            // No call of `stop` may be waiting.
            let _ = gone.send(true);
            exit::clear(left).await;
        });
        is_gone
    }

    async fn adopt_all(&self) -> Result<Vec<RunningWorker>, LaunchError> {
        self.appear().await;
        let shared = self.shared.clone();
        let found = in_background(move || shared.live_states()).await??;
        let mut present = Vec::new();
        for state in found {
            if state.shim.is_alive() {
                let WorkerNote { worker, endpoint, version, placement, server_url, .. } = state.clone();
                let shim = watch::WatchedShim::Other(state.shim.clone());
                self.watch(state, shim, None);
                let is_stopping = self.shared.live(&worker).is_stopping();
                if is_stopping {
                    self.finish_stopping(worker.clone());
                }
                let adopted = RunningWorker { worker, endpoint, version, is_stopping, placement, server_url };
                present.push(adopted);
            } else {
                exit::clear(self.shared.handle_end(state).await).await;
            }
        }
        self.end_left_cgroups(&present).await?;
        Ok(present)
    }

    async fn start_one(&self, mut spec: WorkerSpec) -> Result<(), LaunchError> {
        // A start takes milliseconds: a stop waits for its end.
        let _start = self.starts.begin(&spec.worker);
        self.appear().await;
        set_visible_gpus(&mut spec.env, spec.compute_type, &spec.placement.gpus);
        self.volumes.link_into(&spec.volumes, &mut spec.env);
        if let Some(folder) = &self.worker_runtime {
            python_path::put_first(&mut spec.env, folder, std::env::var("PYTHONPATH").ok());
        }
        let dir = self.shared.live(&spec.worker);
        let (shim, care) = (self.shim.clone(), self.care.clone());
        let code = self.code.clone();
        let warm = self.warm_start(&spec);
        let leaf = self.cgroups().await.map(|own| (own.leaf(&spec.worker), own.enforced(&spec.limits)));
        let started = in_background(move || {
            if let Some(code) = code {
                code.resolve(&mut spec, &dir)?;
            }
            if spec.entrypoint.is_empty() && spec.cmd.is_empty() {
                let reason = "its template has no command; set the template's `dockerStartCmd`";
                return Err(LaunchError(format!("worker {} was not started: {reason}", spec.worker)));
            }
            let start = |source: &Source<'_>, spec| {
                let cgroup = leaf.as_ref().map(|(leaf, limits)| (leaf, *limits));
                spawn::start(&shim, source, &dir, spec, care.clone(), cgroup)
            };
            match warm {
                Some(warm) => warm.start(spec, &dir, start),
                None => Ok((start(&Source::Command, spec)?, Outcome::Plain)),
            }
        });
        let (Started { state, shim }, outcome) = started.await??;
        let (worker, process) = (state.worker.clone(), state.process.clone());
        match outcome {
            Outcome::Plain => drop(self.watch(state, shim, None)),
            Outcome::Forked(recipe) => drop(self.watch(state, shim, Some(recipe))),
            Outcome::Learns(recipe) => {
                let gone = self.watch(state, shim, None);
                self.learn(&worker, process, recipe, gone);
            }
        }
        Ok(())
    }

    /// Stops a worker that an earlier server was stopping.
    fn finish_stopping(&self, worker: WorkerId) {
        let shared = self.shared.clone();
        tokio::spawn(async move {
            if let Err(error) = shared.stop(&worker, GRACE_LEFT).await {
                tracing::error!(%worker, %error, "a worker could not be stopped");
            }
        });
    }
}

/// Signals the worker's process group, unless its leader has exited. Then the shim ends the rest, and another process may
/// have the number.
fn signal_group(state: &WorkerNote, signal: Signal) {
    let living = state.process.as_ref().filter(|process| process.is_alive());
    if let Some(group) = living.and_then(ProcessId::pid) {
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

impl LauncherShared {
    async fn stop(&self, worker: &WorkerId, grace: Duration) -> Result<(), LaunchError> {
        let running = locked(&self.running).get(worker).cloned();
        let Some(WatchedWorker { mut state, gone, .. }) = running else { return Ok(()) };
        if state.process.is_none() {
            // The worker was adopted between the start of the shim and its own start.
            state = self.live(worker).state().unwrap_or(state);
        }
        let vanishes = |within: Duration| {
            let mut gone = gone.clone();
            // An error means that the launcher is being dropped.
            async move { timeout(within, gone.wait_for(|gone| *gone)).await.is_ok() }
        };
        signal_group(&state, Signal::TERM);
        if vanishes(grace).await {
            return Ok(());
        }
        signal_group(&state, Signal::KILL);
        if vanishes(KILL_WAIT).await {
            return Ok(());
        }
        let shim = state.shim.clone();
        in_background(move || shim.kill_all()).await?;
        if vanishes(KILL_WAIT).await {
            return Ok(());
        }
        Err(LaunchError(format!("worker {worker} was killed but did not vanish; look for it with ps")))
    }

    fn live(&self, worker: &WorkerId) -> WorkerDir {
        self.folders.live(worker)
    }
}

impl Launcher for ProcessLauncher {
    fn adopt(&self, _installation: InstallationId) -> LaunchFuture<'_, Vec<RunningWorker>> {
        Box::pin(self.adopt_all())
    }

    fn unenforced(&self, limits: &Limits) -> Option<String> {
        match self.cgroups.get().and_then(Option::as_ref) {
            Some(cgroups) => cgroups.unenforced(limits),
            None => unenforced(limits, Some(NO_CGROUPS), Some(NO_CGROUPS)),
        }
    }

    fn start(&self, spec: WorkerSpec) -> LaunchFuture<'_, ()> {
        Box::pin(self.start_one(spec))
    }

    fn start_stage(&self, worker: &WorkerId) -> LaunchFuture<'_, Option<StartStage>> {
        let dir = self.shared.live(worker);
        Box::pin(in_background(move || {
            // A worker that says nothing runs its own program from the start on.
            dir.stage().or_else(|| dir.state().and_then(|note| note.process).map(|_| StartStage::Loading))
        }))
    }

    fn stop(&self, worker: &WorkerId, grace: Duration, reason: &StopReason) -> LaunchFuture<'_, ()> {
        let (worker, reason) = (worker.clone(), reason.clone());
        Box::pin(async move {
            self.starts.cancel(&worker).await;
            // The note comes first, so that the next server goes on stopping the worker.
            self.shared.live(&worker).note_stopping(&reason);
            self.note_replacement(&worker, &reason);
            self.shared.stop(&worker, grace).await
        })
    }

    fn usage(&self) -> LaunchFuture<'_, HashMap<WorkerId, WorkerUsage>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(in_background(move || {
            let running = locked(&shared.running);
            let shims = running.iter().map(|(id, worker)| (id.clone(), worker.state.shim.clone())).collect();
            drop(running);
            locked(&shared.usage).read(shims)
        }))
    }

    fn end_leftovers(&self, worker: &WorkerId, born: Born, grace: Duration) -> LaunchFuture<'_, usize> {
        let (shared, worker) = (self.shared.clone(), worker.clone());
        Box::pin(async move { shared.end_leftovers(&worker, born, grace).await })
    }

    fn events(&self) -> Option<mpsc::UnboundedReceiver<LaunchEvent>> {
        locked(&self.events).take()
    }

    fn note_served(&self, endpoint: &EndpointId, worker: &WorkerId, served: Served) -> LaunchFuture<'_, ()> {
        let (shared, endpoint, worker) = (self.shared.clone(), *endpoint, worker.clone());
        let note = move || shared.folders.note_served(&endpoint, &worker, &served);
        Box::pin(async move { in_background(note).await? })
    }

    fn forget(&self, endpoint: &EndpointId) -> LaunchFuture<'_, ()> {
        let (shared, endpoint) = (self.shared.clone(), *endpoint);
        self.shared.zygotes.forget(&endpoint);
        Box::pin(async move { in_background(move || shared.folders.remove_ended(&endpoint)).await? })
    }

    fn make_volume(&self, volume: &VolumeId) -> LaunchFuture<'_, ()> {
        let (volumes, volume) = (self.volumes.clone(), *volume);
        Box::pin(async move { in_background(move || volumes.make(&volume)).await? })
    }

    fn mark_volume_deleted(&self, volume: &VolumeId) -> LaunchFuture<'_, ()> {
        let (volumes, volume) = (self.volumes.clone(), *volume);
        Box::pin(async move { in_background(move || volumes.mark_deleted(&volume)).await? })
    }

    fn recover_volumes(&self, known: Vec<VolumeId>) -> LaunchFuture<'_, Vec<VolumeId>> {
        let volumes = self.volumes.clone();
        Box::pin(async move { in_background(move || volumes.recover(&known)).await? })
    }

    fn remove_volume(&self, volume: &VolumeId) -> LaunchFuture<'_, ()> {
        let (volumes, volume) = (self.volumes.clone(), *volume);
        Box::pin(async move { in_background(move || volumes.remove(&volume)).await? })
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

/// A poisoned map is valid, because every change is one call.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, LaunchError> {
    spawn_blocking(work)
        .await
        .map_err(|e| LaunchError(format!("a background task of the launcher failed: {e}")))
}
