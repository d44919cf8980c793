//! Workers that are replaced: stuck, outdated, overdue, or by request.

use std::sync::Arc;
use std::time::Duration;

use longshore_launch::MemoryLauncher;
use longshore_model::{Endpoint, Gpu, Millis, StartStage, StopReason, WorkerId, WorkerPhase};

use super::super::FleetEvent;
use super::fixture::*;
use crate::capacity::Capacity;
use crate::gpu_pool::GpuPool;

#[tokio::test(start_paused = true)]
async fn a_stuck_worker_is_replaced_without_counting_a_retry() {
    let harness = Harness::start(Endpoint { workers_max: 1, ..an_endpoint() });
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let stuck = harness.running()[0].clone();
    harness.queue.set_running(&stuck, 2);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(SOON).await;
    harness.send(FleetEvent::Replace { worker: stuck.clone(), reason: "it did not stop job x".into() });
    harness.wait_ms(SOON).await;
    assert_eq!(harness.stops(), [(stuck.clone(), Duration::from_secs(5))]);
    assert!(matches!(&harness.queue.losses()[..], [(worker, false, _)] if *worker == stuck));
    assert_eq!(harness.running().len(), 1, "another worker was started");
    assert_ne!(harness.running()[0], stuck);
}

#[tokio::test(start_paused = true)]
async fn leftover_processes_are_ended_in_workers_that_keep_running() {
    let harness = Harness::start(Endpoint { workers_max: 1, ..an_endpoint() });
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let worker = harness.running()[0].clone();
    let let_go =
        |worker: &WorkerId| FleetEvent::LetGo { worker: worker.clone(), since: Millis(1), until: Millis(2) };
    harness.send(let_go(&worker));
    harness.send(let_go(&"unknown".parse().unwrap()));
    harness.wait_ms(SOON).await;
    harness.send(FleetEvent::Replace { worker: worker.clone(), reason: "it did not stop job x".into() });
    harness.send(let_go(&worker));
    harness.wait_ms(SOON).await;
    assert_eq!(
        harness.launcher.cleared(),
        [worker],
        "the processes of a worker that is being stopped end with it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_requests_its_replacement_finishes_its_jobs() {
    let harness = Harness::start(Endpoint { workers_min: 1, workers_max: 2, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    let draining = harness.running()[0].clone();
    harness.queue.set_running(&draining, 1);
    harness.send(FleetEvent::Drain { worker: draining.clone(), reason: StopReason::Operator });
    harness.wait_ms(SOON).await;
    assert_eq!(harness.running().len(), 2, "another worker was started");
    harness.queue.set_running(&draining, 0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(SOON).await;
    assert!(!harness.running().contains(&draining));
}

#[tokio::test(start_paused = true)]
async fn a_worker_without_a_first_take_is_replaced() {
    let harness = Harness::start(Endpoint { workers_min: 2, workers_max: 2, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    let [silent, ready] = &harness.running()[..] else { panic!("two workers were started") };
    harness.queue.set_running(ready, 0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(9 * 60_000).await;
    assert!(harness.running().contains(silent), "it may be loading a model");
    harness.wait_ms(2 * 60_000).await;
    assert!(harness.running().contains(ready) && !harness.running().contains(silent));
    assert_eq!(harness.running().len(), 2, "another worker was started");
}

#[tokio::test(start_paused = true)]
async fn a_new_version_replaces_idle_workers_immediately_and_busy_ones_later() {
    let harness = Harness::start(Endpoint { workers_min: 2, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    let old = harness.running();
    harness.queue.set_running(&old[0], 0);
    harness.queue.set_running(&old[1], 1);
    harness.queue.with(|state| state.resource.version = 2);
    harness.send(FleetEvent::Configured);
    harness.wait_ms(SOON).await;
    let started = harness.launcher.started();
    assert_eq!(started.iter().map(|spec| spec.version).collect::<Vec<_>>(), [1, 1, 2, 2]);
    assert!(harness.running().contains(&old[1]), "the worker is busy");
    harness.queue.set_running(&old[1], 0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(SOON).await;
    assert!(!harness.running().contains(&old[1]));
}

#[tokio::test(start_paused = true)]
async fn workers_of_an_old_version_are_drained_while_new_ones_are_being_started() {
    let harness = Harness::start(Endpoint { workers_min: 1, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    let old = harness.running()[0].clone();
    harness.queue.set_running(&old, 1);
    harness.launcher.slow_down(SLOW_START);
    harness.queue.with(|state| state.resource.version = 2);
    harness.send(FleetEvent::Configured);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.queue.with(|state| state.workers[&old].phase), WorkerPhase::Draining);
    assert_eq!(harness.running(), [old], "the new worker does not run yet");
}

#[tokio::test(start_paused = true)]
async fn the_start_of_an_outdated_worker_is_cancelled() {
    let harness = Harness::start(Endpoint { workers_min: 1, ..an_endpoint() });
    harness.launcher.slow_down(SLOW_START);
    harness.wait_ms(SOON).await;
    harness.queue.with(|state| state.resource.version = 2);
    harness.send(FleetEvent::Configured);
    harness.wait_ms(90_000).await;
    let started = harness.launcher.started();
    assert_eq!(started.iter().map(|spec| spec.version).collect::<Vec<_>>(), [2], "the first never ran");
    assert_eq!(harness.running(), [started[0].worker.clone()]);
    assert_eq!(harness.handle.status.borrow().last_crash, None, "a cancelled start is no crash");
}

#[tokio::test(start_paused = true)]
async fn the_patience_begins_when_the_container_starts() {
    let harness = Harness::start(Endpoint { start_patience_ms: 10_000, workers_max: 1, ..an_endpoint() });
    harness.launcher.slow_down(Duration::from_hours(1));
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let id = harness.handle.status.borrow().workers[0].id.clone();
    let report = |stage| harness.launcher.report(&id, an_endpoint().id, stage);
    let pulling = StartStage::Pulling { done_bytes: 41, total_bytes: 109 };
    report(pulling);
    harness.wait_ms(600_000).await;
    assert_eq!(harness.handle.status.borrow().workers[0].stage, Some(pulling));
    assert_eq!(harness.stops(), [], "a pull has a limit of its own");
    report(StartStage::Starting);
    harness.wait_ms(9_000).await;
    assert_eq!(harness.stops(), []);
    harness.wait_ms(1_500).await;
    assert_eq!(harness.stops(), [(id, Duration::from_secs(5))], "the start is cancelled");
    let last_crash = harness.handle.status.borrow().last_crash.clone().unwrap();
    assert!(last_crash.ends_with("asked for no job within 10 s of its start"), "{last_crash}");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_replaced_and_other_workers_start_meanwhile() {
    let harness = Harness::start(Endpoint { start_patience_ms: 10_000, ..an_endpoint() });
    harness.set_queued(1);
    harness.wait_ms(4_000).await;
    let hung = harness.running()[0].clone();
    assert_eq!(harness.running().len(), 1, "it may still come");
    harness.wait_ms(1_500).await;
    let other = harness.running()[1].clone();
    harness.queue.set_running(&other, 1);
    harness.set_queued(0);
    harness.wait_ms(4_000).await;
    assert_eq!(harness.running(), [hung.clone(), other.clone()]);
    harness.wait_ms(1_000).await;
    assert_eq!(harness.running(), [other]);
    assert_eq!(harness.stops(), [(hung.clone(), Duration::from_secs(5))]);
    let reason = format!("worker {hung} asked for no job within 10 s of its start");
    assert_eq!(harness.handle.status.borrow().last_crash.as_deref(), Some(reason.as_str()));
}

#[tokio::test(start_paused = true)]
async fn the_patience_with_an_adopted_worker_begins_with_the_adoption() {
    let adopted = running_worker("adopted", an_endpoint().id);
    let launcher = MemoryLauncher::with_living(vec![adopted.clone()]);
    let endpoint = Endpoint { workers_min: 1, start_patience_ms: 10_000, ..an_endpoint() };
    let harness = Harness::start_adopting(endpoint, launcher, vec![adopted.clone()]);
    harness.wait_ms(9_000).await;
    assert_eq!(harness.running(), std::slice::from_ref(&adopted.worker));
    harness.wait_ms(1_500).await;
    assert!(!harness.running().contains(&adopted.worker));
    let last_crash = harness.handle.status.borrow().last_crash.clone().unwrap();
    assert!(last_crash.ends_with("asked for no job within 10 s of its adoption"), "{last_crash}");
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_machine_is_away_is_replaced_and_keeps_its_gpu_until_it_is_back() {
    let gpu = |device: &str| Gpu { device: device.into(), type_id: "L4".into(), memory_mib: 1 };
    let gpus = Arc::new(GpuPool::new(vec![gpu("0"), gpu("1")], Capacity::default()));
    let endpoint = Endpoint { workers_max: 1, workers_min: 1, ..an_endpoint() };
    let harness = Harness::start_on(&gpus, endpoint, MemoryLauncher::default(), vec![]);
    harness.wait_ms(SOON).await;
    let [first] = &harness.running()[..] else { panic!("one worker") };
    harness.queue.set_running(first, 1);
    harness.launcher.set_away(true);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.running().len(), 2, "another one is started");
    assert!(
        harness.stops().is_empty() && harness.queue.losses().is_empty(),
        "the leases decide about its jobs"
    );
    let held = gpus.status().gpus.into_iter().map(|gpu| gpu.holder.is_some());
    assert_eq!(held.collect::<Vec<_>>(), [true, true]);
    let status = harness.handle.status.borrow().clone();
    let known: Vec<_> = status.workers.iter().map(|one| status.facts.worker(&one.id).is_some()).collect();
    assert_eq!(known.iter().filter(|known| **known).count(), 1, "what is known of it is not what is now");
    assert!(status.facts.worker(first).is_none());

    harness.queue.set_running(first, 0);
    harness.launcher.set_away(false);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.stops().len(), 1, "there is one too many");
}
