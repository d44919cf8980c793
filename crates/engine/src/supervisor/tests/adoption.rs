//! Workers that an earlier server started.

use std::sync::Arc;

use longshore_launch::{InstallationId, Launcher, MemoryLauncher, RunningWorker};
use longshore_model::{Endpoint, EndpointId, WorkerPhase};

use super::super::{WorkerSettings, adopt};
use super::fixture::*;
use crate::gpu_pool::GpuPool;
use crate::runtime::TokioRuntime;

#[tokio::test(start_paused = true)]
async fn adopted_workers_are_registered_and_those_of_unknown_endpoints_stopped() {
    let mine = running_worker("mine", an_endpoint().id);
    let other = running_worker("other", EndpointId::mint(99));
    let launcher: Arc<dyn Launcher> = Arc::new(MemoryLauncher::with_living(vec![mine.clone(), other]));
    let (gpus, settings) = (GpuPool::default(), WorkerSettings::default());
    let is_mine = |id: &EndpointId| *id == mine.endpoint;
    let mut found =
        adopt(&launcher, InstallationId(1), &gpus, &TokioRuntime, &settings, is_mine).await.unwrap();
    assert_eq!(found.remove(&mine.endpoint), Some(vec![mine.clone()]));
    assert!(found.is_empty());

    let launcher = MemoryLauncher::with_living(vec![mine.clone()]);
    let harness = Harness::start_adopting(an_endpoint(), launcher, vec![mine.clone()]);
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    assert!(harness.queue.with(|state| state.workers.contains_key(&mine.worker)));
    assert_eq!(harness.running(), [mine.worker], "the adopted worker counts");
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_that_are_being_stopped_count_and_are_drained() {
    let stopping = RunningWorker { is_stopping: true, ..running_worker("stopping", an_endpoint().id) };
    let worker = stopping.worker.clone();
    let launcher = MemoryLauncher::with_living(vec![stopping.clone()]);
    let harness =
        Harness::start_adopting(Endpoint { workers_max: 1, ..an_endpoint() }, launcher, vec![stopping]);
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.queue.with(|state| state.workers[&worker].phase), WorkerPhase::Draining);
    assert_eq!(
        (harness.running(), harness.stops()),
        (vec![worker.clone()], vec![]),
        "the launcher is stopping it already"
    );
    harness.launcher.exit(&worker, None, Some(9), 90_000);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.launcher.started().len(), 1);
    assert!(matches!(&harness.queue.losses()[..], [(lost, false, _)] if *lost == worker));
}

#[tokio::test(start_paused = true)]
async fn adopted_workers_that_do_not_reach_this_server_are_replaced() {
    let adopted = |name| running_worker(name, an_endpoint().id);
    let (silent, ready) = (adopted("silent"), adopted("ready"));
    let launcher = MemoryLauncher::with_living(vec![silent.clone(), ready.clone()]);
    let endpoint = Endpoint { workers_min: 2, ..an_endpoint() };
    let harness = Harness::start_adopting(endpoint, launcher, vec![silent.clone(), ready.clone()]);
    harness.wait_ms(SOON).await;
    harness.queue.set_running(&ready.worker, 0);
    harness.wait_ms(30_000).await;
    assert!(harness.running().contains(&silent.worker), "it may be loading a model");
    harness.wait_ms(40_000).await;
    assert!(harness.running().contains(&ready.worker) && !harness.running().contains(&silent.worker));
    assert_eq!(harness.running().len(), 2, "another worker was started");
}
