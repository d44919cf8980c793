//! The end of a supervisor: its endpoint is deleted, or the server stops.

use std::time::Duration;

use longshore_model::Endpoint;

use super::super::FleetEvent;
use super::fixture::*;

#[tokio::test(start_paused = true)]
async fn a_deletion_cancels_the_start_of_a_worker() {
    let harness = Harness::start(Endpoint { workers_min: 1, ..an_endpoint() });
    harness.launcher.slow_down(SLOW_START);
    harness.wait_ms(SOON).await;
    harness.send(FleetEvent::Deleted { drain: false });
    harness.handle.task.await.unwrap();
    assert_eq!((harness.launcher.started().len(), harness.launcher.living()), (0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_draining_deletion_lets_jobs_finish() {
    let harness = Harness::start(Endpoint { workers_min: 2, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    let workers = harness.running();
    harness.queue.set_running(&workers[0], 1);
    harness.send(FleetEvent::Deleted { drain: true });
    harness.wait_ms(30_000).await;
    assert_eq!(harness.running(), workers[..1]);
    assert!(!harness.handle.task.is_finished());
    harness.launcher.exit(&workers[0], Some(1), None, 30_000);
    harness.handle.task.await.unwrap();
    let losses = harness.queue.losses();
    assert!(matches!(&losses[..], [(_, false, _), (worker, true, _)] if *worker == workers[0]), "{losses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_stops_the_workers_also_when_the_events_end() {
    let Harness { queue, launcher, events, handle, .. } =
        Harness::start(Endpoint { workers_min: 2, ..an_endpoint() });
    tokio::time::sleep(Duration::from_millis(SOON)).await;
    let busy = launcher.living()[0].clone();
    queue.set_running(&busy, 1);
    events.send(FleetEvent::Deleted { drain: true }).unwrap();
    drop(events);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(launcher.living(), std::slice::from_ref(&busy));
    queue.set_running(&busy, 0);
    handle.task.await.unwrap();
    assert!(launcher.living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_the_queue_reports_as_deleted_stops_its_workers() {
    let harness = Harness::start(Endpoint { workers_min: 1, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    harness.queue.with(|state| state.is_deleted = true);
    harness.send(FleetEvent::Demand);
    harness.handle.task.await.unwrap();
    assert!(harness.launcher.living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_leaves_the_workers_running() {
    let harness = Harness::start(Endpoint { workers_min: 1, ..an_endpoint() });
    harness.wait_ms(SOON).await;
    harness.send(FleetEvent::Shutdown);
    harness.handle.task.await.unwrap();
    assert_eq!(harness.launcher.living().len(), 1);
    assert!(harness.launcher.stopped().is_empty());
}
