//! Whole supervisors with a queue and a launcher that live in memory, under a clock that jumps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longshore_launch::{Launcher, MemoryLauncher, RunningWorker};
use longshore_model::{
    ComputeType, Endpoint, EndpointId, EndpointNo, Gpu, Millis, Placement, Provider, ScalerType, Template,
    TemplateId, WorkerId, WorkerPhase,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{EndpointApi, FleetEvent, SupervisorHandle, SupervisorParts, WorkerSettings, adopt};
use crate::gpu_pool::GpuPool;
use crate::runtime::{Runtime, TokioRuntime};
use crate::{EndpointError, FleetView, WorkerView};

/// A machine without chance.
#[derive(Default)]
struct Numbered {
    last: AtomicU64,
}

impl Runtime for Numbered {
    fn entropy(&self) -> u128 {
        u128::from(self.last.fetch_add(1, Ordering::Relaxed))
    }
}

pub(crate) fn an_endpoint() -> Endpoint {
    Endpoint {
        id: EndpointId::mint(1),
        no: EndpointNo(1),
        name: "hello".into(),
        slug: None,
        template_id: TemplateId::mint(2),
        workers_min: 0,
        workers_max: 3,
        idle_timeout_s: 5,
        scaler_type: ScalerType::RequestCount,
        scaler_value: 1,
        execution_timeout_ms: 600_000,
        max_retries: 2,
        retry_on: vec![],
        result_retention_ms: 1,
        sync_result_retention_ms: 1,
        max_queue_length: None,
        stop_grace_ms: None,
        stream_shape: None,
        paused_from: None,
        provider: Provider::Process,
        max_concurrency: 1,
        durability: longshore_model::Durability::Synced,
        flashboot: true,
        compute_type: ComputeType::Gpu,
        gpu_count: 1,
        models: vec![],
        gpu_type_ids: vec![],
        allowed_cuda_versions: vec![],
        min_cuda_version: None,
        webhook: None,
        webhook_events: vec![],
        cpu_flavor_ids: vec![],
        data_center_ids: vec![],
        network_volume_id: None,
        network_volume_ids: vec![],
        vcpu_count: 2,
        memory_bytes: None,
        vcpus: None,
        version: 1,
        created_at: Millis(0),
        user_id: String::new(),
        deleting: false,
    }
}

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

/// A queue that only counts: jobs wait, workers hold them when the test says so.
#[derive(Clone)]
struct FakeQueue(Arc<Mutex<Papers>>);

struct Papers {
    record: Endpoint,
    queued: u64,
    workers: BTreeMap<WorkerId, (WorkerPhase, u32, Instant)>,
    losses: Vec<(WorkerId, bool, String)>,
    begun: Instant,
    gone: bool,
    unavailable: bool,
}

impl FakeQueue {
    fn new(record: Endpoint) -> Self {
        Self(Arc::new(Mutex::new(Papers {
            record,
            queued: 0,
            workers: BTreeMap::new(),
            losses: Vec::new(),
            begun: Instant::now(),
            gone: false,
            unavailable: false,
        })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Papers) -> T) -> T {
        work(&mut self.0.lock().unwrap())
    }

    fn answer<T>(&self, work: impl FnOnce(&mut Papers) -> T) -> Result<T, EndpointError> {
        self.with(|papers| match papers {
            Papers { gone: true, .. } => Err(EndpointError::Deleted),
            Papers { unavailable: true, .. } => Err(EndpointError::Unavailable("the disk is full".into())),
            papers => Ok(work(papers)),
        })
    }

    /// The worker holds so many jobs from now on; with none it asks for one.
    fn holds(&self, worker: &WorkerId, jobs: u32) {
        self.with(|papers| {
            let entry = papers.workers.get_mut(worker).expect("an introduced worker");
            entry.1 = jobs;
            entry.2 = Instant::now();
            if entry.0 != WorkerPhase::Draining {
                entry.0 = if jobs > 0 { WorkerPhase::Running } else { WorkerPhase::Idle };
            }
        });
    }

    fn losses(&self) -> Vec<(WorkerId, bool, String)> {
        self.with(|papers| papers.losses.clone())
    }
}

impl EndpointApi for FakeQueue {
    fn record(&self) -> Arc<Endpoint> {
        Arc::new(self.with(|papers| papers.record.clone()))
    }

    fn now(&self) -> Millis {
        self.with(|papers| Millis(1_000_000 + papers.begun.elapsed().as_millis() as u64))
    }

    async fn fleet_view(&self) -> Result<FleetView, EndpointError> {
        self.answer(|papers| FleetView {
            queued_normal: papers.queued,
            queued: papers.queued,
            running: papers.workers.values().map(|(_, jobs, _)| u64::from(*jobs)).sum(),
            oldest_normal_wait_ms: None,
            workers: papers
                .workers
                .iter()
                .map(|(id, (phase, running, since))| WorkerView {
                    id: id.clone(),
                    phase: *phase,
                    running: *running,
                    idle_ms: if *running > 0 { 0 } else { since.elapsed().as_millis() as u64 },
                })
                .collect(),
        })
    }

    async fn register_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.answer(|papers| {
            papers.workers.entry(worker).or_insert((WorkerPhase::Initializing, 0, Instant::now()));
        })
    }

    async fn drain_worker(&self, worker: WorkerId) -> Result<(), EndpointError> {
        self.answer(|papers| {
            if let Some(entry) = papers.workers.get_mut(&worker) {
                entry.0 = WorkerPhase::Draining;
            }
        })
    }

    async fn lose_worker(
        &self,
        worker: WorkerId,
        counts_retry: bool,
        reason: String,
    ) -> Result<(), EndpointError> {
        self.answer(|papers| {
            papers.workers.remove(&worker);
            papers.losses.push((worker, counts_retry, reason));
        })
    }
}

/// A supervisor at work.
struct Scene {
    desk: FakeQueue,
    launcher: Arc<MemoryLauncher>,
    events: mpsc::UnboundedSender<FleetEvent>,
    supervised: SupervisorHandle,
}

impl Scene {
    fn open(record: Endpoint) -> Self {
        Self::open_with(record, MemoryLauncher::default(), vec![])
    }

    fn open_with(record: Endpoint, launcher: MemoryLauncher, adopted: Vec<RunningWorker>) -> Self {
        Self::open_on(&Arc::default(), record, launcher, adopted)
    }

    fn open_on(
        gpus: &Arc<GpuPool>,
        record: Endpoint,
        launcher: MemoryLauncher,
        adopted: Vec<RunningWorker>,
    ) -> Self {
        let (desk, launcher) = (FakeQueue::new(record), Arc::new(launcher));
        let (events, receiver) = mpsc::unbounded_channel();
        let supervised = SupervisorParts {
            endpoint_api: desk.clone(),
            template: Box::new(|| Some(Arc::new(a_template()))),
            launcher: launcher.clone(),
            gpu_pool: Arc::clone(gpus),
            settings: WorkerSettings::default(),
            token: "lsw_secret".into(),
            runtime: Arc::new(Numbered::default()),
            adopted,
            moved: true,
        }
        .spawn(receiver);
        let mut exits = launcher.exits().unwrap();
        let (forward, gpus) = (events.downgrade(), Arc::clone(gpus));
        tokio::spawn(async move {
            while let (Some(exited), Some(events)) = (exits.recv().await, forward.upgrade()) {
                gpus.free(&exited.worker);
                let _ = events.send(FleetEvent::Exited(exited));
            }
        });
        Self { desk, launcher, events, supervised }
    }

    fn send(&self, event: FleetEvent) {
        self.events.send(event).unwrap();
    }

    fn queued(&self, jobs: u64) {
        self.desk.with(|papers| papers.queued = jobs);
        self.send(FleetEvent::Demand);
    }

    /// Lets so much time pass; everything that becomes due meanwhile happens in order.
    async fn pass(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn living(&self) -> Vec<WorkerId> {
        self.launcher.living()
    }

    fn stops(&self) -> Vec<(WorkerId, Duration)> {
        self.launcher.stopped()
    }
}

const SOON: u64 = 200;
/// How long a slow start takes.
const LONG: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn from_nothing_to_three_and_back() {
    let scene = Scene::open(an_endpoint());
    scene.pass(60_000).await;
    assert_eq!(scene.living().len(), 0);
    scene.queued(7);
    scene.pass(SOON).await;
    let workers = scene.living();
    assert_eq!(workers.len(), 3, "as many as the maximum allows");
    assert_eq!(scene.supervised.status.borrow().initializing, 3);
    scene.queued(0);
    for worker in &workers {
        scene.desk.holds(worker, 1);
    }
    scene.send(FleetEvent::Demand);
    scene.pass(60_000).await;
    assert_eq!(scene.living(), workers, "busy workers are not idle");
    for worker in &workers {
        scene.desk.holds(worker, 0);
    }
    scene.send(FleetEvent::Demand);
    scene.pass(4_800).await;
    assert_eq!(scene.living(), workers);
    scene.pass(400).await;
    assert_eq!(scene.living().len(), 0);
    assert!(scene.stops().iter().all(|(_, grace)| *grace == Duration::from_secs(10)));
    assert!(scene.desk.losses().iter().all(|(_, counts_retry, _)| !counts_retry), "we asked for it");
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_says_how_long_a_drained_worker_may_take() {
    let scene = Scene::open(Endpoint { stop_grace_ms: Some(1_500), ..an_endpoint() });
    scene.queued(1);
    scene.pass(SOON).await;
    scene.desk.holds(&scene.living()[0], 0);
    scene.queued(0);
    scene.send(FleetEvent::Demand);
    scene.pass(10_000).await;
    let graces: Vec<_> = scene.stops().into_iter().map(|(_, grace)| grace).collect();
    assert_eq!(graces, [Duration::from_millis(1_500)]);
}

#[tokio::test(start_paused = true)]
async fn limits_reach_the_worker_and_those_that_do_not_hold_are_noted_with_it() {
    let scene = Scene::open(Endpoint { memory_bytes: Some(1 << 30), vcpus: Some(0.5), ..an_endpoint() });
    scene.queued(1);
    scene.pass(SOON).await;
    let spec = &scene.launcher.started()[0];
    assert_eq!((spec.limits.memory_bytes, spec.limits.vcpus), (Some(1 << 30), Some(0.5)));
    let status = scene.supervised.status.borrow().clone();
    let told = status.workers[0].placement.unenforced_limits.clone().unwrap();
    assert_eq!(told, "`memoryBytes` and `vcpus` do not hold: this launcher limits no worker");
}

#[tokio::test(start_paused = true)]
async fn a_crash_is_told_with_its_reason_and_tried_again_with_patience() {
    let scene = Scene::open(an_endpoint());
    scene.queued(1);
    for (pause, started) in [(SOON, 1), (1_000, 2), (2_000, 3), (4_000, 4)] {
        scene.pass(pause).await;
        assert_eq!(scene.launcher.started().len(), started);
        scene.launcher.exit(&scene.living()[0], Some(3), None, 250);
        scene.pass(SOON).await;
        let status = scene.supervised.status.borrow().clone();
        assert_eq!((status.initializing, status.unhealthy), (0, 1));
        assert!(status.last_crash.unwrap().contains("exited with code 3"));
    }
    let (_, counts_retry, reason) = scene.desk.losses()[0].clone();
    assert!(counts_retry);
    assert!(
        reason.ends_with("exited with code 3 after 0 s; its last log lines:\nthe last words"),
        "{reason}"
    );
    scene.pass(8_000).await;
    let survivor = scene.living()[0].clone();
    scene.desk.holds(&survivor, 1);
    scene.send(FleetEvent::Demand);
    scene.pass(61_000).await;
    assert_eq!(scene.supervised.status.borrow().last_crash, None, "it has shown that the command works");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_crashes_a_worker_that_served_others_does_not_make_the_next_ones_wait_long() {
    let scene = Scene::open(Endpoint { workers_max: 1, ..an_endpoint() });
    scene.queued(1);
    for started in 1..6 {
        scene.pass(1_000 + SOON).await;
        assert_eq!(scene.launcher.started().len(), started);
        let worker = scene.living()[0].clone();
        for jobs in [1, 0, 1] {
            scene.desk.holds(&worker, jobs);
            scene.send(FleetEvent::Demand);
            scene.pass(SOON).await;
        }
        assert_eq!(scene.supervised.status.borrow().last_crash, None);
        scene.launcher.exit(&worker, None, Some(11), 3_000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_be_started_is_tried_again() {
    let scene = Scene::open(an_endpoint());
    scene.launcher.refuse(Some("no such program"));
    scene.queued(1);
    scene.pass(SOON).await;
    let status = scene.supervised.status.borrow().clone();
    assert_eq!((status.unhealthy, status.last_crash.as_deref()), (1, Some("no such program")));
    scene.launcher.refuse(None);
    scene.pass(1_000).await;
    assert_eq!(scene.living().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_is_replaced_without_counting_a_retry() {
    let scene = Scene::open(Endpoint { workers_max: 1, ..an_endpoint() });
    scene.queued(1);
    scene.pass(SOON).await;
    let hung = scene.living()[0].clone();
    scene.desk.holds(&hung, 2);
    scene.send(FleetEvent::Demand);
    scene.pass(SOON).await;
    scene.send(FleetEvent::Replace { worker: hung.clone(), reason: "it did not stop job x".into() });
    scene.pass(SOON).await;
    assert_eq!(scene.stops(), [(hung.clone(), Duration::from_secs(5))]);
    assert!(matches!(&scene.desk.losses()[..], [(worker, false, _)] if *worker == hung));
    assert_eq!(scene.living().len(), 1, "a fresh one is there");
    assert_ne!(scene.living()[0], hung);
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_job_left_is_ended_in_workers_that_live_on() {
    let scene = Scene::open(Endpoint { workers_max: 1, ..an_endpoint() });
    scene.queued(1);
    scene.pass(SOON).await;
    let worker = scene.living()[0].clone();
    let let_go =
        |worker: &WorkerId| FleetEvent::LetGo { worker: worker.clone(), since: Millis(1), until: Millis(2) };
    scene.send(let_go(&worker));
    scene.send(let_go(&"a-stranger".parse().unwrap()));
    scene.pass(SOON).await;
    scene.send(FleetEvent::Replace { worker: worker.clone(), reason: "it did not stop job x".into() });
    scene.send(let_go(&worker));
    scene.pass(SOON).await;
    assert_eq!(scene.launcher.cleared(), [worker], "with one that is ended, everything ends");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_asks_to_be_replaced_finishes_its_jobs() {
    let scene = Scene::open(Endpoint { workers_min: 1, workers_max: 2, ..an_endpoint() });
    scene.pass(SOON).await;
    let tired = scene.living()[0].clone();
    scene.desk.holds(&tired, 1);
    scene.send(FleetEvent::Refresh { worker: tired.clone() });
    scene.pass(SOON).await;
    assert_eq!(scene.living().len(), 2, "the next one starts beside it");
    scene.desk.holds(&tired, 0);
    scene.send(FleetEvent::Demand);
    scene.pass(SOON).await;
    assert!(!scene.living().contains(&tired));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_by_itself_counts_a_retry_also_if_it_had_its_turn_to() {
    let scene = Scene::open(an_endpoint());
    scene.queued(1);
    scene.pass(SOON).await;
    let worker = scene.living()[0].clone();
    scene.desk.holds(&worker, 1);
    scene.send(FleetEvent::Refresh { worker: worker.clone() });
    scene.pass(SOON).await;
    scene.launcher.exit(&worker, Some(0), None, 60_000);
    scene.pass(SOON).await;
    let losses = scene.desk.losses();
    assert_eq!(losses.iter().map(|(lost, counts, _)| (lost, *counts)).collect::<Vec<_>>(), [(&worker, true)]);
    assert!(scene.supervised.status.borrow().last_crash.is_none(), "it is no crash");
}

#[tokio::test(start_paused = true)]
async fn a_new_version_replaces_idle_workers_at_once_and_busy_ones_later() {
    let scene = Scene::open(Endpoint { workers_min: 2, ..an_endpoint() });
    scene.pass(SOON).await;
    let old = scene.living();
    scene.desk.holds(&old[0], 0);
    scene.desk.holds(&old[1], 1);
    scene.desk.with(|papers| papers.record.version = 2);
    scene.send(FleetEvent::Configured);
    scene.pass(SOON).await;
    let started = scene.launcher.started();
    assert_eq!(started.iter().map(|spec| spec.version).collect::<Vec<_>>(), [1, 1, 2, 2]);
    assert!(scene.living().contains(&old[1]), "it is busy");
    scene.desk.holds(&old[1], 0);
    scene.send(FleetEvent::Demand);
    scene.pass(SOON).await;
    assert!(!scene.living().contains(&old[1]));
}

#[tokio::test(start_paused = true)]
async fn workers_of_an_old_version_get_no_more_jobs_while_new_ones_are_being_started() {
    let scene = Scene::open(Endpoint { workers_min: 1, ..an_endpoint() });
    scene.pass(SOON).await;
    let old = scene.living()[0].clone();
    scene.desk.holds(&old, 1);
    scene.launcher.slow_down(LONG);
    scene.desk.with(|papers| papers.record.version = 2);
    scene.send(FleetEvent::Configured);
    scene.pass(SOON).await;
    assert_eq!(scene.desk.with(|papers| papers.workers[&old].0), WorkerPhase::Draining);
    assert_eq!(scene.living(), [old], "the new one does not run yet");
}

#[tokio::test(start_paused = true)]
async fn workers_that_are_being_started_are_counted_on() {
    let scene = Scene::open(Endpoint { workers_max: 5, ..an_endpoint() });
    scene.launcher.slow_down(LONG);
    for _ in 0..10 {
        scene.queued(2);
        scene.pass(SOON).await;
    }
    assert_eq!(scene.supervised.status.borrow().initializing, 2);
    scene.pass(60_000).await;
    assert_eq!(scene.launcher.started().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_outdated_before_it_runs_is_ended_as_soon_as_it_does() {
    let scene = Scene::open(Endpoint { workers_min: 1, ..an_endpoint() });
    scene.launcher.slow_down(LONG);
    scene.pass(SOON).await;
    scene.desk.with(|papers| papers.record.version = 2);
    scene.send(FleetEvent::Configured);
    scene.pass(90_000).await;
    let started = scene.launcher.started();
    assert_eq!(started.iter().map(|spec| spec.version).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(scene.living(), [started[1].worker.clone()]);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_being_started_when_its_endpoint_is_deleted_does_not_stay() {
    let scene = Scene::open(Endpoint { workers_min: 1, ..an_endpoint() });
    scene.launcher.slow_down(LONG);
    scene.pass(SOON).await;
    scene.send(FleetEvent::Deleted { drain: false });
    scene.supervised.task.await.unwrap();
    assert_eq!((scene.launcher.started().len(), scene.launcher.living()), (1, vec![]));
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_are_introduced_and_strangers_stopped() {
    let mine = RunningWorker {
        worker: "mine".parse().unwrap(),
        endpoint: an_endpoint().id,
        version: 1,
        is_stopping: false,
        placement: Placement::default(),
    };
    let other = RunningWorker {
        worker: "other".parse().unwrap(),
        endpoint: EndpointId::mint(99),
        version: 1,
        is_stopping: false,
        placement: Placement::default(),
    };
    let launcher: Arc<dyn Launcher> = Arc::new(MemoryLauncher::with_living(vec![mine.clone(), other]));
    let mut found = adopt(&launcher, &GpuPool::default(), &TokioRuntime, &WorkerSettings::default(), |id| {
        *id == mine.endpoint
    })
    .await
    .unwrap();
    assert_eq!(found.remove(&mine.endpoint), Some(vec![mine.clone()]));
    assert!(found.is_empty());

    let launcher = MemoryLauncher::with_living(vec![mine.clone()]);
    let scene = Scene::open_with(an_endpoint(), launcher, vec![mine.clone()]);
    scene.queued(1);
    scene.pass(SOON).await;
    assert!(scene.desk.with(|papers| papers.workers.contains_key(&mine.worker)));
    assert_eq!(scene.living(), [mine.worker], "it is counted on");
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_that_are_being_ended_take_up_room_and_get_no_jobs() {
    let worker: WorkerId = "going".parse().unwrap();
    let going = RunningWorker {
        worker: worker.clone(),
        endpoint: an_endpoint().id,
        version: 1,
        is_stopping: true,
        placement: Placement::default(),
    };
    let launcher = MemoryLauncher::with_living(vec![going.clone()]);
    let scene = Scene::open_with(Endpoint { workers_max: 1, ..an_endpoint() }, launcher, vec![going]);
    scene.queued(1);
    scene.pass(SOON).await;
    assert_eq!(scene.desk.with(|papers| papers.workers[&worker].0), WorkerPhase::Draining);
    assert_eq!((scene.living(), scene.stops()), (vec![worker.clone()], vec![]), "its launcher is at it");
    scene.launcher.exit(&worker, None, Some(9), 90_000);
    scene.pass(SOON).await;
    assert_eq!(scene.launcher.started().len(), 1);
    assert!(matches!(&scene.desk.losses()[..], [(lost, false, _)] if *lost == worker));
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_that_do_not_reach_this_server_are_replaced() {
    let adopted = |name: &str| RunningWorker {
        worker: name.parse().unwrap(),
        endpoint: an_endpoint().id,
        version: 1,
        is_stopping: false,
        placement: Placement::default(),
    };
    let (deaf, well) = (adopted("deaf"), adopted("well"));
    let launcher = MemoryLauncher::with_living(vec![deaf.clone(), well.clone()]);
    let endpoint = Endpoint { workers_min: 2, ..an_endpoint() };
    let scene = Scene::open_with(endpoint, launcher, vec![deaf.clone(), well.clone()]);
    scene.pass(SOON).await;
    scene.desk.holds(&well.worker, 0);
    scene.pass(30_000).await;
    assert!(scene.living().contains(&deaf.worker), "it may be loading a model");
    scene.pass(40_000).await;
    assert!(scene.living().contains(&well.worker) && !scene.living().contains(&deaf.worker));
    assert_eq!(scene.living().len(), 2, "another one was started");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_never_asks_for_a_job_is_replaced() {
    let scene = Scene::open(Endpoint { workers_min: 2, workers_max: 2, ..an_endpoint() });
    scene.pass(SOON).await;
    let [mute, well] = &scene.living()[..] else { panic!("two were started") };
    scene.desk.holds(well, 0);
    scene.send(FleetEvent::Demand);
    scene.pass(29 * 60_000).await;
    assert!(scene.living().contains(mute), "it may be loading a model");
    scene.pass(2 * 60_000).await;
    assert!(scene.living().contains(well) && !scene.living().contains(mute));
    assert_eq!(scene.living().len(), 2, "another one was started");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_endpoint_lets_its_jobs_finish_if_asked_to() {
    let scene = Scene::open(Endpoint { workers_min: 2, ..an_endpoint() });
    scene.pass(SOON).await;
    let workers = scene.living();
    scene.desk.holds(&workers[0], 1);
    scene.send(FleetEvent::Deleted { drain: true });
    scene.pass(30_000).await;
    assert_eq!(scene.living(), workers[..1]);
    assert!(!scene.supervised.task.is_finished());
    scene.launcher.exit(&workers[0], Some(1), None, 30_000);
    scene.supervised.task.await.unwrap();
    let losses = scene.desk.losses();
    assert!(matches!(&losses[..], [(_, false, _), (worker, true, _)] if *worker == workers[0]), "{losses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_endpoint_that_nobody_speaks_for_ends_its_workers() {
    let Scene { desk, launcher, events, supervised } =
        Scene::open(Endpoint { workers_min: 2, ..an_endpoint() });
    tokio::time::sleep(Duration::from_millis(SOON)).await;
    let busy = launcher.living()[0].clone();
    desk.holds(&busy, 1);
    events.send(FleetEvent::Deleted { drain: true }).unwrap();
    drop(events);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(launcher.living(), std::slice::from_ref(&busy));
    desk.holds(&busy, 0);
    supervised.task.await.unwrap();
    assert!(launcher.living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_is_gone_ends_its_workers() {
    let scene = Scene::open(Endpoint { workers_min: 1, ..an_endpoint() });
    scene.pass(SOON).await;
    scene.desk.with(|papers| papers.gone = true);
    scene.send(FleetEvent::Demand);
    scene.supervised.task.await.unwrap();
    assert!(scene.launcher.living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_leaves_the_workers_alone() {
    let scene = Scene::open(Endpoint { workers_min: 1, ..an_endpoint() });
    scene.pass(SOON).await;
    scene.send(FleetEvent::Shutdown);
    scene.supervised.task.await.unwrap();
    assert_eq!(scene.launcher.living().len(), 1);
    assert!(scene.launcher.stopped().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_could_not_be_told_is_told_later() {
    let scene = Scene::open(Endpoint { workers_min: 1, ..an_endpoint() });
    scene.pass(SOON).await;
    scene.desk.with(|papers| papers.unavailable = true);
    scene.launcher.exit(&scene.living()[0], None, Some(9), 90_000);
    scene.pass(5_000).await;
    assert!(scene.desk.losses().is_empty());
    scene.desk.with(|papers| papers.unavailable = false);
    scene.pass(2_000).await;
    assert!(matches!(&scene.desk.losses()[..], [(_, true, reason)] if reason.contains("killed by signal 9")));
    assert_eq!(scene.living().len(), 1);
}

mod placing;
