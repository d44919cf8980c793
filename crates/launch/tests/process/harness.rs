//! A launcher with a shim, and workers that run shell scripts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longshore_launch::{
    InstallationId, LaunchEvent, Launcher as _, Limits, ProcessLauncher, RotationLimits, RunningWorker,
    ShimCommand, WorkerExit, WorkerSpec,
};
use longshore_model::{ComputeType, EndpointId, Gpu, Millis, Placement, WorkerId};
use tempfile::TempDir;
use tokio::sync::mpsc::UnboundedReceiver;

/// Longest wait for a condition.
pub const DEADLINE: Duration = Duration::from_mins(1);
/// A grace that no worker uses up.
pub const GRACE: Duration = Duration::from_mins(1);

pub const SHIM: &str = env!("CARGO_BIN_EXE_longshore-worker-shim");

/// A launcher and the exits that it reports, as a server has them.
pub struct Server {
    pub launcher: ProcessLauncher,
    /// The endpoint whose logs are read: at first that of [`sh`].
    pub endpoint: EndpointId,
    events: UnboundedReceiver<LaunchEvent>,
}

impl Server {
    /// A server that stores its workers' directories in `dir`.
    pub fn on(dir: &TempDir) -> Self {
        Self::with_limits(dir, RotationLimits::default())
    }

    /// A server that rotates the logs of workers by these limits.
    pub fn with_limits(dir: &TempDir, limits: RotationLimits) -> Self {
        Self::of(launcher(&dir.path().join("workers")).with_log_limits(limits))
    }

    /// A server that starts its workers with this shim.
    pub fn with_shim(dir: &TempDir, shim: ShimCommand) -> Self {
        Self::of(ProcessLauncher::new(dir.path().join("workers"), shim))
    }

    /// A server whose workers end `after` its exit, unless another server starts.
    pub fn orphaning(dir: &TempDir, after: Option<Duration>) -> Self {
        Self::of(launcher(&dir.path().join("workers")).with_orphans_ended_after(after))
    }

    /// A server with this launcher.
    pub fn of(launcher: ProcessLauncher) -> Self {
        let events = launcher.events().unwrap();
        Self { launcher, endpoint: EndpointId::mint(7), events }
    }

    /// Starts a worker that runs a shell script.
    pub async fn start(&self, script: &str) -> WorkerId {
        let spec = sh(script);
        let id = spec.worker.clone();
        self.launcher.start(spec).await.unwrap();
        id
    }

    /// The log of a worker of the endpoint.
    pub fn log_path(&self, worker: &WorkerId) -> Option<PathBuf> {
        self.launcher.worker_log(&self.endpoint, worker).map(|log| log.path)
    }

    /// Waits for the next exit of a worker.
    pub async fn exited(&mut self) -> WorkerExit {
        let event = tokio::time::timeout(DEADLINE, self.events.recv()).await.expect("an exit in time");
        match event.unwrap() {
            LaunchEvent::Exited(exited) => exited,
            event => panic!("{event:?} is no exit"),
        }
    }

    /// Whether no further event is there.
    pub fn reports_nothing(&mut self) -> bool {
        self.events.try_recv().is_err()
    }

    pub async fn adopt(&self) -> Vec<RunningWorker> {
        self.launcher.adopt(InstallationId(1)).await.unwrap()
    }

    /// The log of a worker of the endpoint; empty without a log.
    pub fn log(&self, worker: &WorkerId) -> String {
        self.log_path(worker).map(|path| fs::read_to_string(path).unwrap()).unwrap_or_default()
    }

    /// Waits until the worker printed something that contains `text`.
    pub async fn prints(&self, worker: &WorkerId, text: &str) -> String {
        eventually(|| Some(self.log(worker)).filter(|log| log.contains(text))).await
    }

    /// Waits until the worker printed a line `name=value`, and returns the value.
    pub async fn printed(&self, worker: &WorkerId, name: &str) -> String {
        let value =
            |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.strip_suffix('\n')?.to_owned());
        eventually(|| self.log(worker).split_inclusive('\n').find_map(value)).await
    }
}

/// A launcher that stores its workers' directories in `dir`.
pub fn launcher(dir: &Path) -> ProcessLauncher {
    let shim = ShimCommand { program: SHIM.into(), arguments: vec![], shown_as: None };
    ProcessLauncher::new(dir.to_owned(), shim)
}

/// The placement of the workers of [`sh`].
pub fn placement() -> Placement {
    let gpu = Gpu { device: "GPU-1234".into(), type_id: "NVIDIA L4".into(), memory_mib: 23_034 };
    Placement {
        started_at: Millis(1_700_000_000_000),
        gpus: vec![gpu],
        unenforced_limits: None,
        cause: None,
        http: None,
    }
}

/// A worker that runs a shell script.
pub fn sh(script: &str) -> WorkerSpec {
    WorkerSpec {
        worker: "wk-1".parse().unwrap(),
        endpoint: EndpointId::mint(7),
        version: 3,
        image: String::new(),
        registry_login: None,
        entrypoint: vec!["sh".to_owned()],
        cmd: ["-c", script].map(str::to_owned).to_vec(),
        code: None,
        workdir: None,
        volumes: vec![],
        server_url: "http://127.0.0.1:8080".to_owned(),
        env: BTreeMap::new(),
        private_home: false,
        compute_type: ComputeType::Gpu,
        placement: placement(),
        limits: Limits::default(),
        flashboot: false,
        secret_variables: BTreeSet::new(),
        disk_bytes: None,
    }
}

/// Calls `check` every 10 ms until it returns a value.
pub async fn eventually<T>(mut check: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "the condition was not met in time");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process runs. A zombie does not.
pub fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// All files below a directory.
pub fn every_file(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(every_file(&path)) } else { files.push(path) }
    }
    files
}
