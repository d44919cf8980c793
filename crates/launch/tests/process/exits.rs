//! The exit of a worker, and a worker that cannot start.

use longshore_launch::{LaunchError, Launcher as _, WorkerSpec};
use longshore_model::{EndpointId, StopReason};

use crate::harness::{GRACE, Server, sh};

#[tokio::test]
async fn an_exit_code_and_the_last_lines_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("echo out; echo err >&2; exit 7").await;
    let exited = server.exited().await;
    assert_eq!(
        (exited.worker.clone(), exited.endpoint, exited.code, exited.signal),
        (worker.clone(), EndpointId::mint(7), Some(7), None)
    );
    assert_eq!(exited.log_tail, "out\nerr");
    assert_eq!(server.log(&worker), "out\nerr\n", "the log outlives the worker");
    assert!(server.reports_nothing(), "reported once");
}

#[tokio::test]
async fn a_signal_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    server.start("kill -9 $$").await;
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.signal), (None, Some(9)));
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_a_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let spec = WorkerSpec { entrypoint: vec!["no-such-program".into()], ..sh("") };
    let LaunchError(text) = server.launcher.start(spec).await.unwrap_err();
    assert!(text.contains("cannot start `no-such-program`: No such file"), "{text}");
    let spec = WorkerSpec { entrypoint: vec![], cmd: vec![], ..sh("") };
    let LaunchError(text) = server.launcher.start(spec).await.unwrap_err();
    assert!(text.contains("`dockerStartCmd`"), "{text}");
    let spec = WorkerSpec { workdir: Some("/no/such/folder".into()), ..sh("true") };
    let LaunchError(text) = server.launcher.start(spec).await.unwrap_err();
    assert!(text.contains("workdir /no/such/folder"), "{text}");
    // Nothing remains that would be adopted or prevent another start.
    server.start("sleep 600").await;
    server.launcher.stop(&"wk-1".parse().unwrap(), GRACE, &StopReason::Operator).await.unwrap();
    assert_eq!(Server::on(&dir).adopt().await, []);
}
