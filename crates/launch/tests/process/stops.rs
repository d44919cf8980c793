//! Stops: the grace of a worker, and the processes that it started.

use std::time::Duration;

use longshore_launch::Launcher as _;
use longshore_model::StopReason;

use crate::harness::{GRACE, Server, is_alive};

#[tokio::test]
async fn a_stop_lets_the_worker_finish_within_its_grace() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done").await;
    server.prints(&worker, "ready").await;
    server.launcher.stop(&worker, GRACE, &StopReason::Idle).await.unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.signal), (Some(0), None));
    let ended = &server.launcher.ended_workers(&exited.endpoint)[0];
    assert_eq!(ended.stop_reason.as_deref(), Some("idle for longer than idleTimeout"));
    assert!(exited.log_tail.ends_with("bye"), "{}", exited.log_tail);
    server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
}

#[tokio::test]
async fn a_worker_that_ignores_sigterm_is_killed_with_its_grandchildren() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let script = "trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo child=$!; wait; sleep 600";
    let worker = server.start(script).await;
    let grandchild = server.printed(&worker, "child").await;
    assert!(is_alive(&grandchild));
    server.launcher.stop(&worker, Duration::from_millis(100), &StopReason::Operator).await.unwrap();
    assert!(!is_alive(&grandchild), "gone when `stop` returns");
    assert_eq!(server.exited().await.signal, Some(9));
}

#[tokio::test]
async fn a_process_of_the_worker_in_another_session_ends_with_the_worker() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("setsid sh -c 'echo child=$$; sleep 600' & sleep 600").await;
    let grandchild = server.printed(&worker, "child").await;
    server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
    assert!(!is_alive(&grandchild));
    server.exited().await;
}
