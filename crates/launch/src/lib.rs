//! Starts, stops and adopts workers.
//!
//! A [`Launcher`] runs workers somewhere: as processes here, later as containers or pods. Workers outlive the
//! server: after a restart [`Launcher::adopt`] finds the living ones.

mod cgroup;
mod code;
mod fold;
#[cfg(test)]
mod hostile;
mod log;
mod memory;
mod mirror;
mod nvidia;
mod presence;
mod proc;
mod process;
pub mod shim;
mod visible_gpus;
mod volumes;
mod worker_dir;

pub use cgroup::{CgroupBase, CgroupError};
pub use code::CodeFolders;
pub use log::RotationLimits;
pub use memory::MemoryLauncher;
pub use nvidia::nvidia_gpus;
pub use process::{ProcessLauncher, ShimCommand};

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_model::{CodeHash, ComputeType, EndpointId, Placement, Provider, VolumeId, WorkerId};
use tokio::sync::mpsc;

/// The launchers of one server, each under the provider whose endpoints it runs workers for. A provider without an entry
/// runs no worker.
pub type Launchers = BTreeMap<Provider, Arc<dyn Launcher>>;

/// What a [`Launcher`] method returns.
pub type LaunchFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LaunchError>> + Send + 'a>>;

/// A worker could not be started or stopped.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct LaunchError(pub String);

/// Everything needed to start one worker.
#[derive(Clone)]
pub struct WorkerSpec {
    /// Its id; also the name of its scratch folder.
    pub worker: WorkerId,
    /// The endpoint that it serves.
    pub endpoint: EndpointId,
    /// The endpoint's version that it was started for.
    pub version: u32,
    /// Program and arguments; empty only where `code` says what to run.
    pub command: Vec<String>,
    /// The deployed code that it runs in place of a `workdir`; without a command, the code says itself how it is run.
    pub code: Option<CodeHash>,
    /// The folder whose entries it sees in the folder it runs in; none means an empty folder. Workers never
    /// share the folder itself: some SDK versions keep a file of running jobs in it.
    pub workdir: Option<PathBuf>,
    /// The network volumes that it sees. The launcher puts them in place and tells the worker where they are.
    pub volumes: Vec<VolumeId>,
    /// The whole environment on top of the server's own. Values are secrets: never logged.
    pub env: BTreeMap<String, String>,
    /// Give it a home folder of its own that shows the real one's entries, except the SDK's configuration: an
    /// API key in there would win over the worker's token.
    pub private_home: bool,
    /// Whether the endpoint wants workers with a GPU. The launcher shows a `Cpu` worker no GPU.
    pub compute_type: ComputeType,
    /// Where it runs. The launcher stores it with the worker, returns it from [`Launcher::adopt`], and shows the worker
    /// only the GPUs in it. Without GPUs in it, a `Gpu` worker sees every GPU of the computer.
    pub placement: Placement,
    /// What it may use.
    pub limits: Limits,
}

/// What one worker may use at most, with all that it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Memory in bytes (`memoryBytes` of the endpoint); none: no limit.
    pub memory_bytes: Option<u64>,
    /// Processors at a time (`vcpus` of the endpoint); none: no limit.
    pub vcpus: Option<f64>,
}

/// Shows the names of the environment only.
impl fmt::Debug for WorkerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSpec")
            .field("worker", &self.worker)
            .field("endpoint", &self.endpoint)
            .field("version", &self.version)
            .field("command", &self.command)
            .field("code", &self.code)
            .field("workdir", &self.workdir)
            .field("volumes", &self.volumes)
            .field("env", &self.env.keys())
            .field("private_home", &self.private_home)
            .field("compute_type", &self.compute_type)
            .field("placement", &self.placement)
            .field("limits", &self.limits)
            .finish()
    }
}

/// A worker that is running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningWorker {
    /// Its id.
    pub worker: WorkerId,
    /// The endpoint that it serves.
    pub endpoint: EndpointId,
    /// The endpoint's version that it was started for.
    pub version: u32,
    /// The server before was ending it, and the launcher goes on with that.
    pub is_stopping: bool,
    /// As it was when it was started.
    pub placement: Placement,
}

/// A worker ended, for whatever reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerExit {
    /// Which.
    pub worker: WorkerId,
    /// The endpoint that it served.
    pub endpoint: EndpointId,
    /// Its exit code; none if a signal ended it or nobody knows.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What is known of why beyond that, such as "killed: out of memory, the limit is 2 GiB (memoryBytes)".
    pub because: Option<String>,
    /// How long it ran, in milliseconds.
    pub ran_ms: u64,
    /// The last lines of its log, at most 20 lines and 4 KiB.
    pub log_tail: String,
    /// It was being stopped, by this server or by the one before.
    pub expected: bool,
    /// As it was when it was started.
    pub placement: Placement,
}

/// The file that a worker's output goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerLog {
    /// The worker that wrote it.
    pub worker: WorkerId,
    /// A full file is renamed and a new one begun, so a follower must open the path again.
    pub path: PathBuf,
    /// Whether the worker runs: only then the file still grows.
    pub is_live: bool,
}

/// A span of time that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Born {
    /// How long ago it began.
    pub since_ago: Duration,
    /// How long ago it ended.
    pub until_ago: Duration,
    /// When these were counted.
    pub as_of: Instant,
}

/// Runs workers somewhere.
pub trait Launcher: Send + Sync + 'static {
    /// Finds the workers that an earlier server started and that still live. Those that ended meanwhile are
    /// reported as [`WorkerExit`]. Those that the earlier server was stopping are ended soon. Called once, before any
    /// `start`.
    fn adopt(&self) -> LaunchFuture<'_, Vec<RunningWorker>>;

    /// Which of these limits a worker that is started now would run without, and why, in words; none where all hold.
    fn unenforced(&self, limits: &Limits) -> Option<String> {
        let never = Some("this launcher limits no worker");
        unenforced(limits, never, never)
    }

    /// Starts a worker. Returns when it runs (not when it is ready for jobs).
    fn start(&self, spec: WorkerSpec) -> LaunchFuture<'_, ()>;

    /// Asks a worker to end, and after `grace` ends it with everything that it started. Returns when it is
    /// gone; its [`WorkerExit`] comes as for any other end. No such worker: returns at once.
    fn stop(&self, worker: &WorkerId, grace: Duration) -> LaunchFuture<'_, ()>;

    /// Ends what a worker began in a span of time, with all that came of it, where it is still there after `grace`, and
    /// the worker lives on. Answers how many processes that were. Where nobody can tell for sure what that is: none.
    fn end_leftovers(&self, _worker: &WorkerId, _born: Born, _grace: Duration) -> LaunchFuture<'_, usize> {
        Box::pin(async { Ok(0) })
    }

    /// The ends of workers, as they come. Can be taken once; a second call answers none.
    fn exits(&self) -> Option<mpsc::UnboundedReceiver<WorkerExit>>;

    /// The endpoint is deleted and has no worker any more: removes what is kept of the ended ones.
    fn forget(&self, _endpoint: &EndpointId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Makes the directory of a network volume; one that is there already stays, one that was set aside comes back.
    fn make_volume(&self, _volume: &VolumeId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Sets a network volume's directory aside, with everything in it, for it is to be deleted.
    fn mark_volume_deleted(&self, _volume: &VolumeId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Takes up what an earlier server left: brings back the directories of volumes that are `known`. Answers which ones
    /// are set aside and wait to be removed.
    fn recover_volumes(&self, _known: Vec<VolumeId>) -> LaunchFuture<'_, Vec<VolumeId>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Removes a directory that was set aside, with everything in it.
    fn remove_volume(&self, _volume: &VolumeId) -> LaunchFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether workers can be started that run this code. Looks at the disk, shortly.
    fn finds_code(&self, _code: &CodeHash) -> bool {
        false
    }

    /// The log of a worker of this endpoint; `None` without a log file, and for a worker of another endpoint. The logs of
    /// ended workers are bounded in number: the oldest are removed. Blocks on the disk.
    fn worker_log(&self, _endpoint: &EndpointId, _worker: &WorkerId) -> Option<WorkerLog> {
        None
    }

    /// The ended workers of an endpoint whose logs are still here, oldest first. Blocks on the disk.
    fn ended_workers(&self, _endpoint: &EndpointId) -> Vec<WorkerId> {
        Vec::new()
    }

    /// The logs of all workers of all endpoints, those of running workers first. Blocks on the disk.
    fn worker_logs(&self) -> Vec<WorkerLog> {
        Vec::new()
    }
}

/// Which of these limits do not hold, by why memory and processors cannot be limited; none: they can.
fn unenforced(limits: &Limits, memory: Option<&str>, cpu: Option<&str>) -> Option<String> {
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
