//! Workers that exit by themselves or cannot be started.

use longshore_model::{Endpoint, StopReason};

use super::super::FleetEvent;
use super::fixture::*;

#[tokio::test(start_paused = true)]
async fn a_crash_is_reported_with_its_reason_and_each_start_waits_longer() {
    let harness = Harness::start(an_endpoint());
    harness.set_queued(1);
    for (pause, started) in [(SOON, 1), (1_000, 2), (2_000, 3), (4_000, 4)] {
        harness.wait_ms(pause).await;
        assert_eq!(harness.launcher.started().len(), started);
        harness.launcher.exit(&harness.running()[0], Some(3), None, 250);
        harness.wait_ms(SOON).await;
        let status = harness.handle.status.borrow().clone();
        assert_eq!((status.initializing, status.unhealthy), (0, 1));
        assert!(status.last_crash.unwrap().contains("exited with code 3"));
    }
    let (_, counts_retry, reason) = harness.queue.losses()[0].clone();
    assert!(counts_retry);
    assert!(
        reason.ends_with("exited with code 3 after 250 ms; its last log lines:\nthe last words"),
        "{reason}"
    );
    harness.wait_ms(8_000).await;
    let survivor = harness.running()[0].clone();
    harness.queue.set_running(&survivor, 1);
    harness.send(FleetEvent::Demand);
    harness.wait_ms(61_000).await;
    assert_eq!(harness.handle.status.borrow().last_crash, None, "its uptime shows that the command works");
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_a_worker_that_served_jobs_does_not_lengthen_the_wait() {
    let harness = Harness::start(Endpoint { workers_max: 1, ..an_endpoint() });
    harness.set_queued(1);
    for started in 1..6 {
        harness.wait_ms(1_000 + SOON).await;
        assert_eq!(harness.launcher.started().len(), started);
        let worker = harness.running()[0].clone();
        for jobs in [1, 0, 1] {
            harness.queue.set_running(&worker, jobs);
            harness.send(FleetEvent::Demand);
            harness.wait_ms(SOON).await;
        }
        assert_eq!(harness.handle.status.borrow().last_crash, None);
        harness.launcher.exit(&worker, None, Some(11), 3_000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_ready_before_does_not_end_the_wait_after_crashes_of_another() {
    let harness = Harness::start(Endpoint { workers_max: 2, ..an_endpoint() });
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let healthy = harness.running()[0].clone();
    for jobs in [1, 0, 1] {
        harness.queue.set_running(&healthy, jobs);
        harness.send(FleetEvent::Demand);
        harness.wait_ms(SOON).await;
    }
    harness.set_queued(20);
    for (pause, started) in [(SOON, 2), (1_000, 3), (2_000, 4), (4_000, 5)] {
        harness.wait_ms(pause).await;
        assert_eq!(harness.launcher.started().len(), started, "after {pause} ms");
        let other = harness.running().iter().find(|worker| **worker != healthy).unwrap().clone();
        harness.launcher.exit(&other, Some(3), None, 250);
        harness.wait_ms(SOON).await;
        for jobs in [0, 1] {
            harness.queue.set_running(&healthy, jobs);
            harness.send(FleetEvent::Demand);
            harness.wait_ms(SOON).await;
        }
        let status = harness.handle.status.borrow().clone();
        assert!(status.last_crash.is_some() && status.facts.crash.is_some(), "the crash is known");
    }
    harness.launcher.exit(&healthy, Some(0), None, 90_000);
    harness.wait_ms(SOON).await;
    assert_eq!(harness.handle.status.borrow().last_crash, None, "it has served jobs since, and none crashed");
}

#[tokio::test(start_paused = true)]
async fn an_exit_with_code_0_before_the_first_take_names_the_missing_call() {
    let harness = Harness::start(an_endpoint());
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    harness.launcher.exit(&harness.running()[0], Some(0), None, 250);
    harness.wait_ms(SOON).await;
    let crash = harness.handle.status.borrow().last_crash.clone().unwrap();
    let expected = "exited with code 0 after 250 ms: the handler must call `runpod.serverless.start(";
    assert!(crash.contains(expected) && crash.ends_with("the last words"), "{crash}");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_is_retried() {
    let harness = Harness::start(an_endpoint());
    harness.launcher.refuse(Some("no such program"));
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let status = harness.handle.status.borrow().clone();
    assert_eq!((status.unhealthy, status.last_crash.as_deref()), (1, Some("no such program")));
    harness.launcher.refuse(None);
    harness.wait_ms(1_000).await;
    assert_eq!(harness.running().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_exits_by_itself_counts_a_retry_also_while_it_is_drained() {
    let harness = Harness::start(an_endpoint());
    harness.set_queued(1);
    harness.wait_ms(SOON).await;
    let worker = harness.running()[0].clone();
    harness.queue.set_running(&worker, 1);
    harness.send(FleetEvent::Drain { worker: worker.clone(), reason: StopReason::Operator });
    harness.wait_ms(SOON).await;
    harness.launcher.exit(&worker, Some(0), None, 60_000);
    harness.wait_ms(SOON).await;
    let losses = harness.queue.losses();
    assert_eq!(losses.iter().map(|(lost, counts, _)| (lost, *counts)).collect::<Vec<_>>(), [(&worker, true)]);
    assert!(harness.handle.status.borrow().last_crash.is_none(), "an exit with code 0 is no crash");
}

#[tokio::test(start_paused = true)]
async fn an_exit_is_reported_when_the_queue_is_available_again() {
    let harness = Harness::start(Endpoint { workers_min: 1, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    harness.queue.with(|state| state.is_unavailable = true);
    harness.launcher.exit(&harness.running()[0], None, Some(9), 90_000);
    harness.wait_ms(5_000).await;
    assert!(harness.queue.losses().is_empty());
    harness.queue.with(|state| state.is_unavailable = false);
    harness.wait_ms(2_000).await;
    assert!(
        matches!(&harness.queue.losses()[..], [(_, true, reason)] if reason.contains("killed by signal 9"))
    );
    assert_eq!(harness.running().len(), 1);
}
