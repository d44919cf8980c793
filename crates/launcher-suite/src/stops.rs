//! Stops: the grace of a worker, and starts that are cancelled.

use std::time::Duration;

use longshore_model::StopReason;
use tokio::time::Instant;

use crate::Rig;
use crate::server::{BRIEF, GRACE, IDLE, Server, new_id};

pub(crate) async fn a_stop_of_no_worker_returns(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    server.stop(&"wk-none".parse().unwrap(), GRACE).await;
    assert!(server.exits().is_empty());
}

pub(crate) async fn after_a_stop_during_a_start_nothing_runs(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    for n in 0..5 {
        let (launcher, spec) = (server.launcher.clone(), rig.spec(&new_id(), IDLE));
        let worker = spec.worker.clone();
        let start = tokio::spawn(async move { launcher.start(spec).await });
        // The stop comes after a different number of the start's steps.
        for _ in 0..n * 2 {
            tokio::task::yield_now().await;
        }
        if n % 2 == 1 {
            tokio::time::sleep(Duration::from_millis(n * 20)).await;
        }
        server.stop(&worker, BRIEF).await;
        match start.await.unwrap() {
            // A stop that came before the start had begun stops nothing.
            Ok(()) => server.stop(&worker, BRIEF).await,
            Err(error) => assert!(error.to_string().contains("stopped before it ran"), "{error}"),
        }
        assert_eq!(rig.remains().await, [] as [&str; 0]);
    }
    assert!(server.exits().iter().all(|exited| exited.expected));
}

pub(crate) async fn a_worker_that_handles_sigterm_ends_by_itself(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.1; done";
    let worker = server.start(rig.spec(&new_id(), script)).await;
    server.prints(&worker, "ready").await;
    server.launcher.stop(&worker, GRACE, &StopReason::Idle).await.unwrap();
    let exited = server.exit().await;
    assert_eq!((exited.code, exited.signal, exited.expected), (Some(7), None, true));
    assert!(exited.log_tail.ends_with("bye"), "{}", exited.log_tail);
    let ended = server.launcher.ended_workers(&crate::endpoint());
    let ended = ended.iter().rfind(|ended| ended.worker == worker).unwrap();
    assert_eq!(ended.stop_reason.as_deref(), Some("idle for longer than idleTimeout"));
}

pub(crate) async fn a_worker_that_ignores_sigterm_is_killed_after_its_grace(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let script = "trap '' TERM; echo ready; while :; do sleep 0.1; done";
    let worker = server.start(rig.spec(&new_id(), script)).await;
    server.prints(&worker, "ready").await;
    let begun = Instant::now();
    server.stop(&worker, BRIEF).await;
    assert!(begun.elapsed() >= BRIEF, "it had its grace");
    let exited = server.exit().await;
    assert_eq!((exited.code, exited.signal, exited.expected), (None, Some(9), true));
    assert_eq!(exited.because, None, "the launcher did it");
}
