//! Several supervisors that share a machine's GPUs.

use longshore_launch::WorkerSpec;

use super::*;

const L4: &str = "NVIDIA L4";

fn machine(gpus: usize) -> Arc<GpuPool> {
    Arc::new(GpuPool::new((0..gpus).map(|n| gpu(&n.to_string())).collect()))
}

fn gpu(device: &str) -> Gpu {
    Gpu { device: device.into(), type_id: L4.into(), memory_mib: 23_034 }
}

fn wants(no: u128, gpu_count: u32) -> Endpoint {
    Endpoint { id: EndpointId::mint(no), gpu_count, ..an_endpoint() }
}

impl Scene {
    fn on(gpus: &Arc<GpuPool>, record: Endpoint) -> Self {
        Self::open_on(gpus, record, MemoryLauncher::default(), vec![])
    }

    fn throttled(&self) -> (u32, Option<String>) {
        let status = self.supervised.status.borrow();
        (status.throttled, status.throttled_because.as_ref().map(ToString::to_string))
    }

    /// The GPUs of each started worker, separated by commas.
    fn devices(&self) -> Vec<String> {
        let devices = |spec: &WorkerSpec| {
            spec.placement.gpus.iter().map(|gpu| gpu.device.as_str()).collect::<Vec<_>>().join(",")
        };
        self.launcher.started().iter().map(devices).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_gpu_says_so_and_starts_as_soon_as_one_is_free() {
    let gpus = machine(2);
    let (first, second) = (Scene::on(&gpus, wants(1, 1)), Scene::on(&gpus, wants(2, 2)));
    first.queued(3);
    first.pass(SOON).await;
    assert_eq!((first.living().len(), first.devices()), (2, vec!["0".to_owned(), "1".to_owned()]));
    let reason = "a worker needs a GPU of any type; 0 of 2 are free".to_owned();
    assert_eq!(first.throttled(), (1, Some(reason)));
    second.queued(1);
    second.pass(SOON).await;
    assert_eq!(second.living().len(), 0);
    let (count, reason) = second.throttled();
    assert_eq!(count, 1);
    assert!(reason.unwrap().ends_with("0 of 2 are free, and 1 endpoint is before this one in line"));

    first.queued(0);
    first.pass(SOON).await;
    assert_eq!(first.throttled(), (0, None));
    for worker in first.living() {
        first.launcher.exit(&worker, Some(0), None, 1_000);
    }
    second.pass(SOON).await;
    assert_eq!((second.throttled(), second.devices()), ((0, None), vec!["0,1".to_owned()]));
    let kept = second.supervised.status.borrow().workers.clone();
    assert_eq!((kept[0].version, kept[0].placement.gpus.len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_could_not_be_started_holds_no_gpu() {
    let gpus = machine(1);
    let scene = Scene::on(&gpus, wants(1, 1));
    scene.launcher.refuse(Some("no room"));
    scene.queued(1);
    scene.pass(SOON).await;
    assert!(gpus.list()[0].1, "it is free again");
    scene.launcher.refuse(None);
    scene.pass(2_000).await;
    assert_eq!(scene.devices(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_machine_does_not_have_is_named() {
    let record = Endpoint { gpu_type_ids: vec!["NVIDIA H200".into()], ..wants(1, 1) };
    let scene = Scene::on(&machine(1), record);
    scene.queued(1);
    scene.pass(SOON).await;
    let reason = "a worker needs a GPU of NVIDIA H200; this machine has 1 x NVIDIA L4".to_owned();
    assert_eq!((scene.living().len(), scene.throttled()), (0, (1, Some(reason))));
    scene.desk.with(|papers| papers.record.gpu_type_ids = vec!["NVIDIA H200".into(), L4.into()]);
    scene.send(FleetEvent::Configured);
    scene.pass(SOON).await;
    assert_eq!(scene.devices(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_endpoint_leaves_the_line() {
    let gpus = machine(2);
    let holder = Scene::on(&gpus, Endpoint { workers_min: 1, ..wants(1, 1) });
    holder.pass(SOON).await;
    let waiting = Scene::on(&gpus, wants(2, 2));
    waiting.queued(1);
    waiting.pass(SOON).await;
    let third = Scene::on(&gpus, wants(3, 1));
    third.queued(1);
    third.pass(SOON).await;
    assert_eq!(third.throttled().0, 1, "the other one is kept for who came before");
    waiting.send(FleetEvent::Deleted { drain: false });
    third.pass(SOON).await;
    assert_eq!((third.throttled().0, third.living().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_keep_their_gpus() {
    let gpus = machine(1);
    let old = RunningWorker {
        worker: "old".parse().unwrap(),
        endpoint: wants(1, 1).id,
        version: 1,
        is_stopping: false,
        placement: Placement { gpus: vec![gpu("0")], ..Placement::default() },
    };
    let launcher: Arc<dyn Launcher> = Arc::new(MemoryLauncher::with_living(vec![old.clone()]));
    let found = adopt(&launcher, &gpus, &TokioRuntime, &WorkerSettings::default(), |_| true).await.unwrap();
    let adopted = found[&old.endpoint].clone();
    let launcher = MemoryLauncher::with_living(adopted.clone());
    let first = Scene::open_on(&gpus, Endpoint { workers_min: 1, ..wants(1, 1) }, launcher, adopted);
    let second = Scene::on(&gpus, wants(2, 1));
    second.queued(1);
    second.pass(SOON).await;
    assert_eq!((second.throttled().0, first.living().len()), (1, 1));
    first.launcher.exit(&old.worker, Some(0), None, 1_000);
    second.pass(SOON).await;
    assert_eq!(second.devices(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn endpoints_without_need_for_gpus_wait_for_none() {
    let gpus = machine(1);
    let scene = Scene::on(&gpus, Endpoint { compute_type: ComputeType::Cpu, ..wants(1, 8) });
    scene.queued(3);
    scene.pass(SOON).await;
    assert_eq!(scene.devices(), ["", "", ""]);
    assert!(scene.launcher.started().iter().all(|spec| spec.compute_type == ComputeType::Cpu));
    let unshared = Scene::on(&Arc::default(), wants(2, 8));
    unshared.queued(3);
    unshared.pass(SOON).await;
    assert_eq!(unshared.living().len(), 3, "a machine without an inventory runs everything");
}
