//! A supervisor with a queue and a launcher in memory, and an endpoint and a template to start from.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longshore_launch::{LaunchEvent, Launcher as _, MemoryLauncher, RunningWorker};
use longshore_model::{Endpoint, EndpointId, Millis, Placement, Template, TemplateId, WorkerId, WorkerPhase};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::{EndpointApi, FleetEvent, SupervisorHandle, SupervisorParts, WorkerSettings};
use crate::admitted_workers::AdmittedWorkers;
use crate::balancer::address::WorkerAddress;
use crate::gpu_pool::GpuPool;
use crate::runtime::Runtime;
use crate::{EndpointError, EventCounts, FleetView, WorkerView};

/// A runtime whose entropy is a counter.
struct CountingRuntime {
    last: AtomicU64,
    /// How many more times the process may act before another one may own the rows.
    acts_left: AtomicU64,
}

impl CountingRuntime {
    /// A runtime whose worker ids no other harness of this process has.
    fn new() -> Self {
        static BEFORE: AtomicU64 = AtomicU64::new(0);
        let no = BEFORE.fetch_add(1, Ordering::Relaxed);
        Self { last: AtomicU64::new(no * IDS_OF_A_HARNESS), acts_left: AtomicU64::new(u64::MAX) }
    }
}

/// How many worker ids are one harness's alone: its first four letters.
const IDS_OF_A_HARNESS: u64 = 26_u64.pow(4);

impl Runtime for CountingRuntime {
    fn may_act(&self) -> bool {
        let used = |left: u64| left.checked_sub(1);
        self.acts_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, used).is_ok()
    }

    fn entropy(&self) -> u128 {
        u128::from(self.last.fetch_add(1, Ordering::Relaxed))
    }
}

/// An endpoint with managed workers, at most three.
pub(crate) fn an_endpoint() -> Endpoint {
    let record = json!({
        "id": EndpointId::mint(1), "no": 1, "name": "hello", "templateId": TemplateId::mint(2), "workersMin": 0,
        "workersMax": 3, "idleTimeout": 5, "scalerType": "REQUEST_COUNT", "scalerValue": 1,
        "executionTimeoutMs": 600_000, "maxRetries": 2, "retryOn": [], "resultRetentionMs": 1,
        "syncResultRetentionMs": 1, "provider": "process", "maxConcurrency": 1, "flashboot": true,
        "computeType": "GPU", "gpuCount": 1, "vcpuCount": 2, "version": 1, "createdAt": 0,
    });
    serde_json::from_value(record).unwrap()
}

/// A template with a command.
pub(crate) fn a_template() -> Template {
    Template {
        id: TemplateId::mint(2),
        name: "hello".into(),
        image_name: "hello".into(),
        docker_entrypoint: vec!["python".into()],
        docker_start_cmd: vec!["handler.py".into()],
        workdir: None,
        env: BTreeMap::new(),
        category: "CPU".into(),
        container_disk_in_gb: 1,
        container_registry_auth_id: None,
        is_public: false,
        is_serverless: true,
        ports: vec![],
        readme: String::new(),
        volume_in_gb: 0,
        volume_mount_path: String::new(),
        endpoints: longshore_model::SharedWith::default(),
        created_at: Millis(0),
    }
}

/// A queue without jobs: the test sets how many are queued, and how many each worker runs.
#[derive(Clone)]
pub(super) struct FakeQueue {
    state: Arc<Mutex<QueueState>>,
    pub(super) counts: Arc<EventCounts>,
    pub(super) admitted: Arc<AdmittedWorkers>,
}

pub(super) struct QueueState {
    pub(super) resource: Endpoint,
    queued: u64,
    pub(super) workers: BTreeMap<WorkerId, FakeWorker>,
    /// Lost workers: the worker, whether its jobs count a retry, and the reason.
    losses: Vec<(WorkerId, bool, String)>,
    started: Instant,
    /// Every request fails, because the endpoint is deleted.
    pub(super) is_deleted: bool,
    /// Every request fails, as if the queue was reloading.
    pub(super) is_unavailable: bool,
    /// Whether the server drains: no worker is to start.
    pub(super) is_server_draining: bool,
}

/// A worker that the queue knows.
pub(super) struct FakeWorker {
    pub(super) phase: WorkerPhase,
    /// The number of jobs that the worker runs.
    running: u32,
    /// The number of jobs that the worker ended.
    jobs_done: u64,
    /// When `running` was last set.
    since: Instant,
}

impl FakeQueue {
    fn new(resource: Endpoint) -> Self {
        let state = QueueState {
            resource,
            queued: 0,
            workers: BTreeMap::new(),
            losses: Vec::new(),
            started: Instant::now(),
            is_deleted: false,
            is_unavailable: false,
            is_server_draining: false,
        };
        Self { state: Arc::new(Mutex::new(state)), counts: Arc::default(), admitted: Arc::default() }
    }

    /// Reads or changes the state.
    pub(super) fn with<T>(&self, access: impl FnOnce(&mut QueueState) -> T) -> T {
        access(&mut self.state.lock().unwrap())
    }

    /// Replies to a request of the supervisor.
    fn reply<T>(&self, handle: impl FnOnce(&mut QueueState) -> T) -> Result<T, EndpointError> {
        self.with(|state| match state {
            QueueState { is_deleted: true, .. } => Err(EndpointError::Deleted),
            QueueState { is_unavailable: true, .. } => {
                Err(EndpointError::Unavailable("the disk is full".into()))
            }
            state => Ok(handle(state)),
        })
    }

    /// Sets how many jobs a worker runs from now on. A worker that runs none sends a take.
    pub(super) fn set_running(&self, worker: &WorkerId, jobs: u32) {
        self.with(|state| {
            let worker = state.workers.get_mut(worker).expect("a registered worker");
            worker.jobs_done += u64::from(worker.running.saturating_sub(jobs));
            worker.running = jobs;
            worker.since = Instant::now();
            if worker.phase != WorkerPhase::Draining {
                worker.phase = if jobs > 0 { WorkerPhase::Running } else { WorkerPhase::Idle };
            }
        });
    }

    /// The lost workers: the worker, whether its jobs count a retry, and the reason.
    pub(super) fn losses(&self) -> Vec<(WorkerId, bool, String)> {
        self.with(|state| state.losses.clone())
    }
}

impl EndpointApi for FakeQueue {
    fn record(&self) -> Arc<Endpoint> {
        Arc::new(self.with(|state| state.resource.clone()))
    }

    fn now(&self) -> Millis {
        self.with(|state| Millis(1_000_000 + state.started.elapsed().as_millis() as u64))
    }

    fn counts(&self) -> &EventCounts {
        &self.counts
    }

    fn admitted(&self) -> &AdmittedWorkers {
        &self.admitted
    }

    fn is_server_draining(&self) -> bool {
        self.with(|state| state.is_server_draining)
    }

    async fn fleet_view(&self) -> Result<FleetView, EndpointError> {
        self.reply(|state| FleetView {
            queued_normal: state.queued,
            queued: state.queued,
            running: state.workers.values().map(|worker| u64::from(worker.running)).sum(),
            oldest_normal_wait_ms: None,
            workers: state
                .workers
                .iter()
                .map(|(id, worker)| WorkerView {
                    id: id.clone(),
                    phase: worker.phase,
                    running: worker.running,
                    jobs: Vec::new(),
                    jobs_done: worker.jobs_done,
                    last_contact: Millis(0),
                    address: None,
                    health: None,
                    idle_ms: if worker.running > 0 { 0 } else { worker.since.elapsed().as_millis() as u64 },
                })
                .collect(),
        })
    }

    async fn register_worker(
        &self,
        worker: WorkerId,
        _address: Option<WorkerAddress>,
    ) -> Result<(), EndpointError> {
        self.reply(|state| {
            state.workers.entry(worker).or_insert(FakeWorker {
                phase: WorkerPhase::Initializing,
                running: 0,
                jobs_done: 0,
                since: Instant::now(),
            });
        })
    }

    async fn drain_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.reply(|state| {
            if let Some(worker) = state.workers.get_mut(&worker) {
                worker.phase = WorkerPhase::Draining;
            }
        })
    }

    async fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> Result<(), EndpointError> {
        self.reply(|state| {
            state.workers.remove(&worker);
            state.losses.push((worker, counts_retry, reason));
        })
    }
}

/// A running supervisor with its queue and launcher.
pub(super) struct Harness {
    pub(super) queue: FakeQueue,
    pub(super) launcher: Arc<MemoryLauncher>,
    pub(super) events: mpsc::UnboundedSender<FleetEvent>,
    pub(super) handle: SupervisorHandle,
    runtime: Arc<CountingRuntime>,
}

impl Harness {
    pub(super) fn start(resource: Endpoint) -> Self {
        Self::start_adopting(resource, MemoryLauncher::default(), vec![])
    }

    pub(super) fn start_adopting(
        resource: Endpoint,
        launcher: MemoryLauncher,
        adopted: Vec<RunningWorker>,
    ) -> Self {
        Self::start_on(&Arc::default(), resource, launcher, adopted)
    }

    pub(super) fn start_on(
        gpus: &Arc<GpuPool>,
        resource: Endpoint,
        launcher: MemoryLauncher,
        adopted: Vec<RunningWorker>,
    ) -> Self {
        let (queue, launcher) = (FakeQueue::new(resource), Arc::new(launcher));
        let (events, receiver) = mpsc::unbounded_channel();
        let runtime = Arc::new(CountingRuntime::new());
        let handle = SupervisorParts {
            endpoint_api: queue.clone(),
            template: Box::new(|| Some(Arc::new(a_template()))),
            secret: Box::new(|_| None),
            login: Box::new(|_| None),
            launcher: launcher.clone(),
            gpu_pool: Arc::clone(gpus),
            settings: WorkerSettings::default(),
            token: Box::new(|worker| format!("lsw_secret_{worker}")),
            runtime: Arc::clone(&runtime) as _,
            adopted,
            moved: true,
        }
        .spawn(receiver);
        let mut exits = launcher.events().unwrap();
        let (forward, gpus) = (events.downgrade(), Arc::clone(gpus));
        tokio::spawn(async move {
            while let (Some(event), Some(events)) = (exits.recv().await, forward.upgrade()) {
                let event = match event {
                    LaunchEvent::Stage { worker, stage, .. } => FleetEvent::Stage { worker, stage },
                    LaunchEvent::Away { worker, machine, .. } => FleetEvent::Away { worker, machine },
                    LaunchEvent::Back { worker, .. } => FleetEvent::Back { worker },
                    LaunchEvent::Exited(exited) => {
                        gpus.free(&exited.worker);
                        FleetEvent::Exited(exited)
                    }
                };
                let _ = events.send(event);
            }
        });
        Self { queue, launcher, events, handle, runtime }
    }

    pub(super) fn send(&self, event: FleetEvent) {
        self.events.send(event).unwrap();
    }

    /// Sets whether another process may own the rows.
    pub(super) fn set_lease_over(&self, is_over: bool) {
        self.set_acts_left(if is_over { 0 } else { u64::MAX });
    }

    /// Sets after how many acts another process may own the rows.
    pub(super) fn set_acts_left(&self, acts: u64) {
        self.runtime.acts_left.store(acts, Ordering::Relaxed);
    }

    /// Sets how many jobs are queued, and notifies the supervisor.
    pub(super) fn set_queued(&self, jobs: u64) {
        self.queue.with(|state| state.queued = jobs);
        self.send(FleetEvent::Demand);
    }

    /// Advances the paused clock by `ms`; everything that becomes due meanwhile happens in order.
    pub(super) async fn wait_ms(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// The workers that run.
    pub(super) fn running(&self) -> Vec<WorkerId> {
        self.launcher.living()
    }

    /// The workers that the launcher was told to stop, with their grace.
    pub(super) fn stops(&self) -> Vec<(WorkerId, Duration)> {
        self.launcher.stopped()
    }
}

/// Time in ms within which a supervisor has handled an event.
pub(super) const SOON: u64 = 200;
/// The duration of a slow start.
pub(super) const SLOW_START: Duration = Duration::from_secs(30);

/// A worker that an earlier server started for an endpoint.
pub(super) fn running_worker(worker: &str, endpoint: EndpointId) -> RunningWorker {
    RunningWorker {
        worker: worker.parse().unwrap(),
        endpoint,
        version: 1,
        is_stopping: false,
        placement: Placement::default(),
        server_url: None,
    }
}
