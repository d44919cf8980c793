//! Workers whose server does not come back.

use std::fs;
use std::time::Duration;

use crate::harness::{Server, eventually, is_alive};

#[tokio::test]
async fn a_worker_without_a_server_is_ended_by_its_shim() {
    let dir = tempfile::tempdir().unwrap();
    let soon = Duration::from_millis(200);
    let server = Server::orphaning(&dir, Some(soon));
    let worker = server.start("trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done").await;
    let log = server.prints(&worker, "ready").await;
    assert!(!log.contains("bye"));
    let state = fs::read(server.log_path(&worker).unwrap().with_file_name("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let shim = state["shim"]["pid"].to_string();
    drop(server);
    eventually(|| (!is_alive(&shim)).then_some(())).await;
    let mut server = Server::on(&dir);
    assert_eq!(server.adopt().await, []);
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.expected), (Some(0), true), "no retry is counted");
    let lines: Vec<&str> = exited.log_tail.lines().collect();
    assert_eq!(lines[0], "ready");
    assert!(lines[1].starts_with("[longshore] the server has been away for "), "{}", lines[1]);
    assert!(lines[1].ends_with(" s: ending the worker"), "{}", lines[1]);
    // In between the shell may say that its child was terminated.
    assert_eq!(lines.last(), Some(&"bye"));
}

#[tokio::test]
async fn a_worker_that_ignores_sigterm_is_killed_without_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::orphaning(&dir, Some(Duration::from_millis(100)));
    let worker = server.start("trap '' TERM; echo pid=$$; while :; do sleep 0.05; done").await;
    let pid = server.printed(&worker, "pid").await;
    drop(server);
    eventually(|| (!is_alive(&pid)).then_some(())).await;
}
