//! Several supervisors that share the GPUs of one computer.

use std::sync::Arc;

use longshore_launch::{InstallationId, Launcher, MemoryLauncher, RunningWorker, WorkerSpec};
use longshore_model::{ComputeType, Endpoint, EndpointId, Gpu, Placement};

use super::super::{FleetEvent, WorkerSettings, adopt};
use super::fixture::*;
use crate::capacity::Capacity;
use crate::gpu_pool::GpuPool;
use crate::runtime::TokioRuntime;

const L4: &str = "NVIDIA L4";

/// A computer with this number of GPUs.
fn computer(gpus: usize) -> Arc<GpuPool> {
    let gpus = (0..gpus).map(|n| gpu(&n.to_string())).collect();
    Arc::new(GpuPool::new(gpus, Capacity::default()))
}

fn gpu(device: &str) -> Gpu {
    Gpu { device: device.into(), type_id: L4.into(), memory_mib: 23_034 }
}

/// An endpoint whose workers need `gpu_count` GPUs each.
fn needing(no: u128, gpu_count: u32) -> Endpoint {
    Endpoint { id: EndpointId::mint(no), gpu_count, ..an_endpoint() }
}

impl Harness {
    fn on(gpus: &Arc<GpuPool>, resource: Endpoint) -> Self {
        Self::start_on(gpus, resource, MemoryLauncher::default(), vec![])
    }

    /// The number of throttled workers, and the reason.
    fn throttled(&self) -> (u32, Option<String>) {
        let status = self.handle.status.borrow();
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
async fn a_worker_without_free_gpus_is_throttled_until_they_are_free() {
    let gpus = computer(2);
    let (first, second) = (Harness::on(&gpus, needing(1, 1)), Harness::on(&gpus, needing(2, 2)));
    first.set_queued(3);
    first.wait_ms(SOON).await;
    assert_eq!((first.running().len(), first.devices()), (2, vec!["0".to_owned(), "1".to_owned()]));
    let reason = "a worker needs a GPU of any type; 0 of 2 are free".to_owned();
    assert_eq!(first.throttled(), (1, Some(reason)));
    second.set_queued(1);
    second.wait_ms(SOON).await;
    assert_eq!(second.running().len(), 0);
    let (count, reason) = second.throttled();
    assert_eq!(count, 1);
    assert!(reason.unwrap().ends_with("0 of 2 are free, and 1 endpoint is before this one in line"));

    first.set_queued(0);
    first.wait_ms(SOON).await;
    assert_eq!(first.throttled(), (0, None));
    for worker in first.running() {
        first.launcher.exit(&worker, Some(0), None, 1_000);
    }
    second.wait_ms(SOON).await;
    assert_eq!((second.throttled(), second.devices()), ((0, None), vec!["0,1".to_owned()]));
    let workers = second.handle.status.borrow().workers.clone();
    assert_eq!((workers[0].version, workers[0].placement.gpus.len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_could_not_be_started_holds_no_gpu() {
    let gpus = computer(1);
    let harness = Harness::on(&gpus, needing(1, 1));
    harness.launcher.refuse(Some("no room"));
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    assert!(gpus.status().gpus[0].holder.is_none(), "it is free again");
    harness.launcher.refuse(None);
    harness.wait_ms(2_000).await;
    assert_eq!(harness.devices(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_gpu_type_is_named() {
    let resource = Endpoint { gpu_type_ids: vec!["NVIDIA H200".into()], ..needing(1, 1) };
    let harness = Harness::on(&computer(1), resource);
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let reason = "a worker needs a GPU of NVIDIA H200; this machine has 1 x NVIDIA L4".to_owned();
    assert_eq!((harness.running().len(), harness.throttled()), (0, (1, Some(reason))));
    harness.queue.with(|state| state.resource.gpu_type_ids = vec!["NVIDIA H200".into(), L4.into()]);
    harness.send(FleetEvent::Configured);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.devices(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_endpoint_is_no_waiter() {
    let gpus = computer(2);
    let holder = Harness::on(&gpus, Endpoint { workers_min: 1, ..needing(1, 1) });
    holder.wait_ms(SOON).await;
    let waiting = Harness::on(&gpus, needing(2, 2));
    waiting.set_queued(1);
    waiting.wait_ms(SOON).await;
    let third = Harness::on(&gpus, needing(3, 1));
    third.set_queued(1);
    third.wait_ms(SOON).await;
    assert_eq!(third.throttled().0, 1, "the free GPU is reserved for the first waiter");
    waiting.send(FleetEvent::Deleted { drain: false });
    third.wait_ms(SOON).await;
    assert_eq!((third.throttled().0, third.running().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_keep_their_gpus() {
    let gpus = computer(1);
    let placement = Placement { gpus: vec![gpu("0")], ..Placement::default() };
    let old = RunningWorker { placement, ..running_worker("old", needing(1, 1).id) };
    let launcher: Arc<dyn Launcher> = Arc::new(MemoryLauncher::with_living(vec![old.clone()]));
    let found =
        adopt(&launcher, InstallationId(1), &gpus, &TokioRuntime, &WorkerSettings::default(), |_| true)
            .await
            .unwrap();
    let adopted = found[&old.endpoint].clone();
    let launcher = MemoryLauncher::with_living(adopted.clone());
    let first = Harness::start_on(&gpus, Endpoint { workers_min: 1, ..needing(1, 1) }, launcher, adopted);
    let second = Harness::on(&gpus, needing(2, 1));
    second.set_queued(1);
    second.wait_ms(SOON).await;
    assert_eq!((second.throttled().0, first.running().len()), (1, 1));
    first.launcher.exit(&old.worker, Some(0), None, 1_000);
    second.wait_ms(SOON).await;
    assert_eq!(second.devices(), ["0"]);
}

#[tokio::test(start_paused = true)]
async fn endpoints_that_need_no_gpu_wait_for_none() {
    let gpus = computer(1);
    let harness = Harness::on(&gpus, Endpoint { compute_type: ComputeType::Cpu, ..needing(1, 8) });
    harness.set_queued(3);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.devices(), ["", "", ""]);
    assert!(harness.launcher.started().iter().all(|spec| spec.compute_type == ComputeType::Cpu));
    let unshared = Harness::on(&Arc::default(), needing(2, 8));
    unshared.set_queued(3);
    unshared.wait_ms(SOON).await;
    assert_eq!(unshared.running().len(), 3, "a pool without GPUs places every worker");
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_room_is_throttled_until_another_one_ends() {
    let capacity = Capacity { memory_bytes: Some(3 << 30), workers_max: Some(2), ..Capacity::default() };
    let room = Arc::new(GpuPool::new(vec![gpu("0")], capacity));
    let needing_memory = |no, gib: u64| {
        let id = EndpointId::mint(no);
        Endpoint { id, compute_type: ComputeType::Cpu, memory_bytes: Some(gib << 30), ..an_endpoint() }
    };
    let first = Harness::on(&room, needing_memory(1, 2));
    first.set_queued(1);
    first.wait_ms(SOON).await;
    let second = Harness::on(&room, needing_memory(2, 2));
    second.set_queued(1);
    second.wait_ms(SOON).await;
    let reason = "a worker needs 2048 MiB of memory (`memoryBytes`); 1024 MiB of 3072 MiB are not promised to other workers";
    assert_eq!(second.throttled(), (1, Some(reason.to_owned())));
    // A smaller worker has room, and no worker after it.
    let small = Harness::on(&room, needing_memory(3, 1));
    small.set_queued(2);
    small.wait_ms(SOON).await;
    assert_eq!((small.running().len(), small.throttled().0), (1, 1));
    let needs_gpu = Harness::on(&room, needing(4, 1));
    needs_gpu.set_queued(1);
    needs_gpu.wait_ms(SOON).await;
    let reason = "the server runs 2 workers, and `workers_max_total` is 2".to_owned();
    assert_eq!(needs_gpu.throttled(), (1, Some(reason)));
    assert!(room.status().gpus[0].holder.is_none(), "a worker without room holds no GPU");

    first.set_queued(0);
    first.launcher.exit(&first.running()[0], Some(0), None, 1_000);
    second.wait_ms(SOON).await;
    assert_eq!((second.running().len(), second.throttled()), (1, (0, None)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_gpus_is_promised_no_room() {
    let capacity = Capacity { workers_max: Some(2), ..Capacity::default() };
    let room = Arc::new(GpuPool::new(vec![gpu("0")], capacity));
    let (holder, waiting) = (Harness::on(&room, needing(1, 1)), Harness::on(&room, needing(2, 1)));
    holder.set_queued(1);
    holder.wait_ms(SOON).await;
    waiting.set_queued(1);
    waiting.wait_ms(SOON).await;
    assert!(waiting.throttled().1.unwrap().starts_with("a worker needs a GPU"));
    let other = Harness::on(&room, Endpoint { compute_type: ComputeType::Cpu, ..needing(3, 1) });
    other.set_queued(1);
    other.wait_ms(SOON).await;
    assert_eq!(other.running().len(), 1);
}
