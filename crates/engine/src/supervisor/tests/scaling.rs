//! The number of workers follows the load and the limits of the endpoint.

use std::time::Duration;

use longshore_model::{Endpoint, ScalerType};

use super::super::FleetEvent;
use super::fixture::*;

#[tokio::test(start_paused = true)]
async fn from_nothing_to_three_and_back() {
    let harness = Harness::start(an_endpoint());
    harness.wait_ms(60_000).await;
    assert_eq!(harness.running().len(), 0);
    harness.set_queued(7);
    harness.wait_ms(SOON).await;
    let workers = harness.running();
    assert_eq!(workers.len(), 3, "as many as the maximum allows");
    assert_eq!(harness.handle.status.borrow().initializing, 3);
    harness.set_queued(0);
    for worker in &workers {
        harness.queue.set_running(worker, 1);
    }
    harness.send(FleetEvent::Demand);
    harness.wait_ms(60_000).await;
    assert_eq!(harness.running(), workers, "busy workers are not idle");
    for worker in &workers {
        harness.queue.set_running(worker, 0);
    }
    harness.send(FleetEvent::Demand);
    harness.wait_ms(4_800).await;
    assert_eq!(harness.running(), workers);
    harness.wait_ms(400).await;
    assert_eq!(harness.running().len(), 0);
    assert!(harness.stops().iter().all(|(_, grace)| *grace == Duration::from_secs(10)));
    assert!(
        harness.queue.losses().iter().all(|(_, counts_retry, _)| !counts_retry),
        "the supervisor stopped them"
    );
}

/// Runs one job of 1 s, and waits for the next one for as long as given. Returns whether the worker is still there then.
async fn one_job(harness: &Harness, pause_ms: u64) -> bool {
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let worker = harness.running()[0].clone();
    harness.queue.set_running(&worker, 1);
    harness.set_queued(0);
    harness.wait_ms(1_000).await;
    harness.queue.set_running(&worker, 0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(pause_ms).await;
    harness.running().contains(&worker)
}

#[tokio::test(start_paused = true)]
async fn idle_workers_are_kept_for_the_usual_gap_between_jobs() {
    let by_gaps = Endpoint { scaler_type: ScalerType::IdleGaps, scaler_value: 1, ..an_endpoint() };
    let harness = Harness::start(Endpoint { workers_max: 1, idle_timeout_max_s: 100, ..by_gaps });
    for job in 0..10 {
        assert!(!one_job(&harness, 40_000).await, "job {job}: idleTimeout holds until ten gaps are known");
    }
    assert!(one_job(&harness, 40_000).await, "kept for a gap of 40 s");
    assert!(!one_job(&harness, 60_000).await, "and no longer");
}

#[tokio::test(start_paused = true)]
async fn the_stop_grace_of_the_endpoint_has_priority() {
    let harness = Harness::start(Endpoint { stop_grace_ms: Some(1_500), ..an_endpoint() });
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    harness.queue.set_running(&harness.running()[0], 0);
    harness.set_queued(0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(10_000).await;
    let graces: Vec<_> = harness.stops().into_iter().map(|(_, grace)| grace).collect();
    assert_eq!(graces, [Duration::from_millis(1_500)]);
}

#[tokio::test(start_paused = true)]
async fn limits_reach_the_worker_and_unenforced_ones_are_in_its_status() {
    let harness = Harness::start(Endpoint { memory_bytes: Some(1 << 30), vcpus: Some(0.5), ..an_endpoint() });
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let spec = &harness.launcher.started()[0];
    assert_eq!((spec.limits.memory_bytes, spec.limits.vcpus), (Some(1 << 30), Some(0.5)));
    let status = harness.handle.status.borrow().clone();
    let unenforced = status.workers[0].placement.unenforced_limits.clone().unwrap();
    assert_eq!(unenforced, "`memoryBytes` and `vcpus` do not hold: this launcher limits no worker");
}

#[tokio::test(start_paused = true)]
async fn workers_that_are_being_started_count() {
    let harness = Harness::start(Endpoint { workers_max: 5, ..an_endpoint() });
    harness.launcher.slow_down(SLOW_START);
    for _ in 0..10 {
        harness.set_queued(2);
        harness.wait_ms(SOON).await;
    }
    assert_eq!(harness.handle.status.borrow().initializing, 2);
    harness.wait_ms(60_000).await;
    assert_eq!(harness.launcher.started().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_keeps_busy_workers_alone_and_starts_them_again_after_its_drain() {
    let harness = Harness::start(Endpoint { workers_min: 2, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    let workers = harness.running();
    assert_eq!(workers.len(), 2);
    harness.queue.set_running(&workers[0], 1);
    harness.queue.set_running(&workers[1], 0);
    harness.queue.with(|state| state.is_server_draining = true);
    harness.set_queued(3);
    harness.wait_ms(60_000).await;
    assert_eq!(harness.running(), [workers[0].clone()], "the busy one, and no other for the queued jobs");
    harness.queue.set_running(&workers[0], 0);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.running().len(), 0);
    assert!(harness.queue.losses().iter().all(|(_, counts_retry, _)| !counts_retry));
    harness.queue.with(|state| state.is_server_draining = false);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.running().len(), 3);
}
