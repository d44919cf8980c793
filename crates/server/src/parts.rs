//! Creates the server's parts from the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_blobs::DirBlobs;
use longshore_docker::DockerLauncher;
use longshore_engine::{DirWebhookLog, Engine, EngineParts, HttpTransport, TokioRuntime};
use longshore_launch::{
    CgroupBase, CgroupError, CodeFolders, Launcher, Launchers, ProcessLauncher, ShimCommand,
};
use longshore_model::Provider;
use longshore_store::{EmbeddedStore, Scrub};
use longshore_trust::Roots;
use longshore_vault::Keyring;

use crate::reserve::Reserve;
use crate::settings::Settings;
use crate::startup_error::StartupError;
use crate::worker_runtime;

/// The hidden subcommand that supervises one worker.
const SHIM_SUBCOMMAND: &str = "worker-shim";

/// The hidden subcommand that creates a version's Python environment and executes its handler.
const CODE_SUBCOMMAND: &str = "code-worker";

/// Starts an engine on the data directory, with its background reader. Workers connect to `server_url`.
pub(crate) async fn start_engine(
    settings: &Settings,
    launchers: Launchers,
    vault: Keyring,
    server_url: String,
) -> Result<(Engine, Scrub), StartupError> {
    let roots = Roots::load(settings.webhook_ca_file()).map_err(StartupError::WebhookAuthorities)?;
    let gpus = settings.gpus(longshore_launch::nvidia_gpus()).await?;
    // Opening the store needs some space. A disk without any gets that of the reserve.
    Reserve::of(&settings.data_dir).use_if_full();
    let (store, blobs) = open_data(settings).await?;
    let scrub = store.scrub(&settings.data_dir);
    let hook_log_dir = settings.data_dir.join("webhooks");
    let hook_log = DirWebhookLog::open(&hook_log_dir, settings.webhook_log_bytes_max())
        .map_err(|cause| StartupError::WebhookLog { path: hook_log_dir, cause })?;
    let parts = EngineParts {
        store: Arc::new(store),
        blobs: Arc::new(blobs),
        launchers,
        runtime: Arc::new(TokioRuntime),
        webhook_transport: Arc::new(HttpTransport::with_roots(&settings.webhooks(), &roots)),
        webhook_log: Arc::new(hook_log),
        vault: Arc::new(vault),
        settings: settings.engine(),
        webhooks: settings.webhooks(),
        workers: settings.workers(server_url, gpus),
    };
    Ok((Engine::start(parts).await?, scrub))
}

/// Opens the store and the payloads in the data directory. One server at a time can have them open.
pub(crate) async fn open_data(settings: &Settings) -> Result<(EmbeddedStore, DirBlobs), StartupError> {
    let dir = settings.data_dir.clone();
    let store = tokio::task::spawn_blocking(move || EmbeddedStore::open(&dir))
        .await
        .map_err(|error| StartupError::Engine(error.to_string()))??;
    let blobs_dir = settings.data_dir.join("blobs");
    let blobs = DirBlobs::open(&blobs_dir)
        .map_err(|error| StartupError::Blobs { path: blobs_dir, cause: error.to_string() })?;
    Ok((store, blobs))
}

/// The launchers of this server, by provider: processes of this computer, and containers if it has a Docker daemon.
pub(crate) fn launchers(settings: &Settings) -> Result<Launchers, StartupError> {
    let process: Arc<dyn Launcher> = Arc::new(process_launcher(settings)?);
    let mut launchers = Launchers::from([(Provider::Process, process)]);
    if let Some(docker) = settings.docker() {
        let dir = settings.data_dir.join("containers");
        let docker = DockerLauncher::new(&dir, &volumes_dir(settings), docker);
        launchers.insert(Provider::Docker, Arc::new(docker));
    }
    Ok(launchers)
}

/// Directory of the network volumes.
fn volumes_dir(settings: &Settings) -> PathBuf {
    settings.data_dir.join("volumes")
}

fn process_launcher(settings: &Settings) -> Result<ProcessLauncher, StartupError> {
    let shim = ShimCommand::this_program(SHIM_SUBCOMMAND);
    // `/proc/self/exe` works after an upgrade has replaced the program's file. The shim is this program and starts
    // the worker.
    let runner = vec!["/proc/self/exe".to_owned(), CODE_SUBCOMMAND.to_owned()];
    let launcher = ProcessLauncher::new(settings.data_dir.join("workers"), shim)
        .with_volumes(volumes_dir(settings))
        .with_code(CodeFolders::at(&code_dir(&settings.data_dir)), runner)
        .with_orphans_ended_after(settings.orphans_ended_after());
    let launcher = match worker_runtime_folder(settings) {
        Some(folder) => launcher.with_worker_runtime(folder),
        None => launcher,
    };
    match worker_cgroup(settings) {
        WorkerCgroup::Found(base) => Ok(launcher.with_cgroups(base)),
        WorkerCgroup::None(_) => Ok(launcher),
        WorkerCgroup::Unusable(cause) => Err(StartupError::WorkerCgroup(cause)),
    }
}

/// The folder of the worker runtime; `None` if the runtime is off, and if its files cannot be written: then workers run at
/// the pace of their SDK.
fn worker_runtime_folder(settings: &Settings) -> Option<PathBuf> {
    if !settings.is_worker_runtime_on() {
        return None;
    }
    let cache = settings.data_dir.join("cache");
    let folder = worker_runtime::prepare(&cache);
    folder
        .inspect_err(|error| {
            tracing::warn!(%error, cache = %cache.display(), "workers start without the worker runtime");
        })
        .ok()
}

/// Logs where workers' cgroups are made, or why there are none. A server calls this when its start can no longer be
/// refused.
pub(crate) fn log_worker_cgroup(settings: &Settings) {
    match worker_cgroup(settings) {
        WorkerCgroup::Found(base) => {
            tracing::info!(base = %base.path().display(), "each worker gets a cgroup of its own");
        }
        WorkerCgroup::None(reason) => tracing::info!(%reason, "workers get no cgroups of their own"),
        WorkerCgroup::Unusable(error) => tracing::warn!(%error, "workers get no cgroups of their own"),
    }
}

/// The cgroup for workers.
pub(crate) enum WorkerCgroup {
    /// Workers get their own cgroups below this one.
    Found(CgroupBase),
    /// No cgroup was delegated to this program.
    None(CgroupError),
    /// The configured cgroup cannot be used.
    Unusable(CgroupError),
}

/// Looks for the parent cgroup of workers, without changing anything.
pub(crate) fn worker_cgroup(settings: &Settings) -> WorkerCgroup {
    match settings.worker_cgroup() {
        Some(path) => CgroupBase::at(path).map_or_else(WorkerCgroup::Unusable, WorkerCgroup::Found),
        None => CgroupBase::delegated().map_or_else(WorkerCgroup::None, WorkerCgroup::Found),
    }
}

/// Directory of deployed code.
pub(crate) fn code_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("code")
}
