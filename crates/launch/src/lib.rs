//! Starts, stops and adopts workers.
//!
//! A [`Launcher`] runs the workers of one provider, for example as processes of this computer. Workers outlive the server:
//! after a restart, [`Launcher::adopt`] returns the workers that still run.

mod amd;
mod cgroup;
mod code;
mod fold;
mod gpu_reading;
#[cfg(test)]
mod hostile;
mod log;
mod log_tail;
mod memory;
mod mirror;
mod nvidia;
mod presence;
mod proc;
mod process;
mod python_path;
pub mod shim;
mod starts;
mod visible_gpus;
mod volumes;
mod worker_dir;
mod worker_folders;
mod zygote;

pub use amd::{amd_render_node, amd_unique_id};
pub use cgroup::{CgroupBase, CgroupError};
pub use code::{CodeFolders, CodeSource};
pub use gpu_reading::{GpuReading, read_gpus};
pub use log::{RotatedLog, RotationLimits};
pub use log_tail::tail;
pub use memory::MemoryLauncher;
pub use process::{ProcessLauncher, ShimCommand};
pub use python_path::put_first as put_worker_runtime_first;
pub use starts::{StartInProgress, Starts};
pub use volumes::Volumes;
pub use worker_dir::{ExitNote, WorkerDir};
pub use worker_folders::WorkerFolders;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_model::{
    CodeHash, ComputeType, EndedWorker, EndpointId, Placement, Provider, Served, StartStage, StopReason,
    VolumeId, WorkerId,
};
use tokio::sync::mpsc;

/// The launchers of one server, each under the provider whose endpoints it runs workers for. A provider without an entry
/// runs no worker.
pub type Launchers = BTreeMap<Provider, Arc<dyn Launcher>>;

/// What a [`Launcher`] method returns.
pub type LaunchFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LaunchError>> + Send + 'a>>;

/// A call of a launcher failed. The text says what failed and why.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(pub String);

/// Everything needed to start one worker.
#[derive(Clone)]
pub struct WorkerSpec {
    /// The worker's id, also the name of its folder.
    pub worker: WorkerId,
    /// The endpoint whose jobs the worker takes.
    pub endpoint: EndpointId,
    /// The endpoint's version that the worker was started for.
    pub version: u32,
    /// The container image; without effect for a process.
    pub image: String,
    /// The login for the image's registry; `None`: without login.
    pub registry_login: Option<RegistryLogin>,
    /// The first words of the command line; empty: those of the image, or none.
    pub entrypoint: Vec<String>,
    /// The words after `entrypoint`; empty: those of the image, or none.
    pub cmd: Vec<String>,
    /// The deployed code that the worker runs in place of a `workdir`. Without `entrypoint` and `cmd`, the launcher runs
    /// the code's own handler.
    pub code: Option<CodeHash>,
    /// The folder whose entries the worker's current folder shows; `None`: an empty folder. Each worker has a folder of
    /// its own, because some SDK versions write a file of running jobs there.
    pub workdir: Option<PathBuf>,
    /// The network volumes of the worker. The launcher puts them in place and sets the variables with their paths.
    pub volumes: Vec<VolumeId>,
    /// The address of this server that `env` names. The launcher stores it with the worker.
    pub server_url: String,
    /// The variables that the launcher adds to the environment of its workers. Values are secrets: never logged.
    pub env: BTreeMap<String, String>,
    /// Whether the worker gets a home folder of its own. That folder shows the entries of the real one, except the SDK's
    /// configuration: an API key in the configuration would override the worker's token.
    pub private_home: bool,
    /// Whether the endpoint wants workers with a GPU. The launcher shows a `Cpu` worker no GPU.
    pub compute_type: ComputeType,
    /// Where it runs. The launcher stores it with the worker, returns it from [`Launcher::adopt`], and shows the worker
    /// only the GPUs in it. Without GPUs in it, a `Gpu` worker sees every GPU of the computer.
    pub placement: Placement,
    /// The limits of memory and processors.
    pub limits: Limits,
    /// Whether the worker may be started as a fork of a process that has imported what its handler imports.
    pub flashboot: bool,
    /// The names of the variables of `env` whose values are secrets of the store. Such a process does not get them.
    pub secret_variables: BTreeSet<String>,
    /// The size of the files that a container may write outside of volumes, in bytes (`containerDiskInGb` of the template);
    /// `None`: no limit. Without effect for a process.
    pub disk_bytes: Option<u64>,
}

/// A login for a registry of images. The password is a secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RegistryLogin {
    /// The name of the user at the registry.
    pub username: String,
    /// The password, or a token.
    pub password: String,
}

/// Shows the user without the password.
impl fmt::Debug for RegistryLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryLogin").field("username", &self.username).finish_non_exhaustive()
    }
}

/// What one worker may use, together with all processes that it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Memory in bytes (`memoryBytes` of the endpoint); `None`: no limit.
    pub memory_bytes: Option<u64>,
    /// Number of processors (`vcpus` of the endpoint); `None`: no limit.
    pub vcpus: Option<f64>,
}

/// Shows the names of the variables without their values.
impl fmt::Debug for WorkerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSpec")
            .field("worker", &self.worker)
            .field("endpoint", &self.endpoint)
            .field("version", &self.version)
            .field("image", &self.image)
            .field("registry_login", &self.registry_login)
            .field("entrypoint", &self.entrypoint)
            .field("cmd", &self.cmd)
            .field("code", &self.code)
            .field("workdir", &self.workdir)
            .field("volumes", &self.volumes)
            .field("server_url", &self.server_url)
            .field("env", &self.env.keys())
            .field("private_home", &self.private_home)
            .field("compute_type", &self.compute_type)
            .field("placement", &self.placement)
            .field("limits", &self.limits)
            .field("flashboot", &self.flashboot)
            .field("secret_variables", &self.secret_variables)
            .field("disk_bytes", &self.disk_bytes)
            .finish()
    }
}

/// A worker that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningWorker {
    /// The id of the worker.
    pub worker: WorkerId,
    /// The endpoint whose jobs the worker takes.
    pub endpoint: EndpointId,
    /// The endpoint's version that the worker was started for.
    pub version: u32,
    /// Whether an earlier server was stopping the worker; the launcher goes on stopping it.
    pub is_stopping: bool,
    /// The placement of its start.
    pub placement: Placement,
    /// The address of the server that the worker was started with; `None` if unknown.
    pub server_url: Option<String>,
}

/// The identity of one server's data: 128 random bits, which its first start generates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstallationId(pub u128);

/// An event of a launcher about one of its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaunchEvent {
    /// A start in progress has reached a stage, or the progress of its stage changed.
    Stage {
        /// The worker that is being started.
        worker: WorkerId,
        /// The endpoint whose jobs the worker takes.
        endpoint: EndpointId,
        /// What the launcher does.
        stage: StartStage,
    },
    /// The machine of a worker does not answer, so it is unknown whether the worker runs. Its leases decide about its jobs; its
    /// GPUs stay its own, because a machine that is cut off may go on with them. Until the machine is back, no exit of the worker
    /// is reported, its stop does not return, and nothing is started there.
    Away {
        /// The worker whose machine is away.
        worker: WorkerId,
        /// The endpoint whose jobs the worker takes.
        endpoint: EndpointId,
        /// The name of the machine.
        machine: String,
    },
    /// The machine of a worker answers again. If the worker has ended meanwhile, its exit follows.
    Back {
        /// The worker whose machine is back.
        worker: WorkerId,
        /// The endpoint whose jobs the worker takes.
        endpoint: EndpointId,
    },
    /// A worker exited. Not sent for a worker whose start failed.
    Exited(WorkerExit),
}

/// The exit of a worker: reported once per worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerExit {
    /// The worker that exited.
    pub worker: WorkerId,
    /// The endpoint whose jobs the worker took.
    pub endpoint: EndpointId,
    /// The exit code; `None` after a signal, and if it is unknown.
    pub code: Option<i32>,
    /// The number of the signal that ended the worker; `None` if no signal did, and if it is unknown.
    pub signal: Option<i32>,
    /// A further cause, such as "killed: out of memory, the limit is 2 GiB (memoryBytes)"; `None` if unknown.
    pub because: Option<String>,
    /// The uptime of the worker, in ms.
    pub ran_ms: u64,
    /// The last lines of its log, at most 20 lines and 4 KiB.
    pub log_tail: String,
    /// What the worker said last that it does to start; `None` if it said nothing.
    pub stage: Option<StartStage>,
    /// Whether a server was stopping the worker, this one or an earlier one.
    pub expected: bool,
    /// The placement of its start.
    pub placement: Placement,
}

/// The file that a worker's output goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// The worker that writes the log.
    pub worker: WorkerId,
    /// The path of the file. A full file is renamed and a new one created, so a follower must open the path again.
    pub path: PathBuf,
    /// Whether the worker runs: only then the file still grows.
    pub is_live: bool,
}

/// What a worker uses of its computer, together with all processes that it started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerUsage {
    /// The resident memory in bytes. Memory that several processes share counts in each of them.
    pub rss_bytes: u64,
    /// The number of processors that it used on average since the reading before, such as 0.25; at the first reading
    /// since its start.
    pub cpu_ratio: f64,
}

/// A span of time in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Born {
    /// Time since the span's begin.
    pub since_ago: Duration,
    /// Time since the span's end.
    pub until_ago: Duration,
    /// The moment to which both times refer.
    pub as_of: Instant,
}

/// Runs the workers of one provider.
pub trait Launcher: Send + Sync + 'static {
    /// Returns the workers of an earlier server that still run. Workers that have ended meanwhile are reported as
    /// [`WorkerExit`]. Workers that the earlier server was stopping are ended within seconds. Called before any `start`,
    /// again after an error, and never again after a success.
    ///
    /// Everything that a launcher makes outside of the data directory carries the `installation`, and a launcher touches
    /// only what carries its own.
    ///
    /// # Errors
    ///
    /// The workers could not be listed, and none is adopted.
    fn adopt(&self, installation: InstallationId) -> LaunchFuture<'_, Vec<RunningWorker>>;

    /// The address under which the workers of this launcher reach the server; `None`: the server's own.
    fn server_url(&self) -> Option<&str> {
        None
    }

    /// The limits that would not be enforced for a worker that is started now, and why, as text; `None` if all would.
    fn unenforced(&self, limits: &Limits) -> Option<String> {
        let never = Some("this launcher limits no worker");
        unenforced(limits, never, never)
    }

    /// Whether the workers of this launcher share the TCP ports of this computer, so that each needs ports of its own.
    fn shares_ports(&self) -> bool {
        true
    }

    /// The address at which this server reaches the ports of a worker that runs; `None` if it cannot reach them.
    fn host_of(&self, _worker: &WorkerId) -> LaunchFuture<'_, Option<IpAddr>> {
        Box::pin(async { Ok(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))) })
    }

    /// Starts a worker. Returns when the worker runs, which is before it is ready for jobs. [`Launcher::stop`] cancels a
    /// start in progress.
    ///
    /// # Errors
    ///
    /// The worker was not started, and nothing of it remains.
    fn start(&self, spec: WorkerSpec) -> LaunchFuture<'_, ()>;

    /// What a worker that has been started does until its first take; `None` if that is unknown.
    fn start_stage(&self, _worker: &WorkerId) -> LaunchFuture<'_, Option<StartStage>> {
        Box::pin(async { Ok(None) })
    }

    /// Signals a worker to exit, and after `grace` kills it with all processes that it started. Returns when the worker has
    /// exited; its [`WorkerExit`] is reported as for any other exit. A start in progress is cancelled and fails, or the
    /// worker is stopped as soon as it runs. Returns immediately if no such worker runs or is being started. Afterwards,
    /// nothing of the worker exists but its log. [`EndedWorker`] has the `reason` of the first call.
    ///
    /// # Errors
    ///
    /// The worker was killed and still runs.
    fn stop(&self, worker: &WorkerId, grace: Duration, reason: &StopReason) -> LaunchFuture<'_, ()>;

    /// What each running worker uses of its computer; a worker may be missing. May be called often: readings of a worker
    /// are at least a second apart.
    fn usage(&self) -> LaunchFuture<'_, HashMap<WorkerId, WorkerUsage>> {
        Box::pin(async { Ok(HashMap::new()) })
    }

    /// Kills the processes that a worker started in a span of time, and their descendants, if they still run after
    /// `grace`. The worker goes on. Returns the number of killed processes; 0 if their origin is uncertain.
    ///
    /// # Errors
    ///
    /// The processes could not be listed or killed.
    fn end_leftovers(&self, _worker: &WorkerId, _born: Born, _grace: Duration) -> LaunchFuture<'_, usize> {
        Box::pin(async { Ok(0) })
    }

    /// Builds a container image of the files in `context`, a tar archive with a `Dockerfile` that may be gzipped, and returns
    /// its whole name, for [`WorkerSpec::image`]. `image` is a name with a tag. `print` gets pieces of the output as they come.
    /// The drop of the returned future ends the build.
    ///
    /// # Errors
    ///
    /// Why there is no image. A launcher without containers builds none.
    fn build_image<'a>(
        &'a self,
        _image: &'a str,
        _context: Vec<u8>,
        _print: mpsc::Sender<String>,
    ) -> LaunchFuture<'a, String> {
        Box::pin(async { Err(LaunchError("this server builds no images".to_owned())) })
    }

    /// The events of workers. `Some` for the first call alone.
    fn events(&self) -> Option<mpsc::UnboundedReceiver<LaunchEvent>>;

    /// Notes what a worker did until its end, for [`EndedWorker`]. Called after its [`WorkerExit`].
    ///
    /// # Errors
    ///
    /// The note could not be written.
    fn note_served(
        &self,
        _endpoint: &EndpointId,
        _worker: &WorkerId,
        _served: Served,
    ) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Removes what is stored of an endpoint's ended workers. Called when the endpoint is deleted and has no worker.
    fn forget(&self, _endpoint: &EndpointId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Creates the directory of a network volume, or brings it back if it was set aside. Keeps an existing one.
    fn make_volume(&self, _volume: &VolumeId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Sets a network volume's directory aside with its contents. Succeeds if there is none.
    fn mark_volume_deleted(&self, _volume: &VolumeId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Recovers after a start: brings back the directories of `known` volumes that are set aside. Returns the other volumes
    /// that are set aside, which the caller removes.
    fn recover_volumes(&self, _known: Vec<VolumeId>) -> LaunchFuture<'_, Vec<VolumeId>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Removes a directory that was set aside, with its contents. Succeeds if there is none.
    fn remove_volume(&self, _volume: &VolumeId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether this code is here for workers to run. Blocks on the disk for a few file names.
    fn finds_code(&self, _code: &CodeHash) -> bool {
        false
    }

    /// The log of a worker of this endpoint; `None` without a log file, and for a worker of another endpoint. The logs of
    /// ended workers are bounded in number: the oldest are removed. Blocks on the disk.
    fn worker_log(&self, _endpoint: &EndpointId, _worker: &WorkerId) -> Option<WorkerLog> {
        None
    }

    /// The ended workers of an endpoint whose logs are still here, oldest first. Blocks on the disk.
    fn ended_workers(&self, _endpoint: &EndpointId) -> Vec<EndedWorker> {
        Vec::new()
    }

    /// The logs of all workers of all endpoints, those of running workers first. Blocks on the disk.
    fn worker_logs(&self) -> Vec<WorkerLog> {
        Vec::new()
    }
}

/// The limits that are not enforced, as text; `None` if all are. `memory` and `cpu`: why they cannot be limited.
pub fn unenforced(limits: &Limits, memory: Option<&str>, cpu: Option<&str>) -> Option<String> {
    let memory = memory.filter(|_| limits.memory_bytes.is_some()).map(|why| ("memoryBytes", why));
    let cpu = cpu.filter(|_| limits.vcpus.is_some()).map(|why| ("vcpus", why));
    match (memory, cpu) {
        (Some((one, why)), Some((other, too))) if why == too => {
            Some(format!("`{one}` and `{other}` do not hold: {why}"))
        }
        (memory, cpu) => {
            let each = [memory, cpu].into_iter().flatten();
            let each: Vec<_> = each.map(|(name, why)| format!("`{name}` does not hold: {why}")).collect();
            (!each.is_empty()).then(|| each.join("; "))
        }
    }
}
