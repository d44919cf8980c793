//! Workers that outlive their server and are adopted by the next one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use longshore_launch::{InstallationId, Launcher as _, RunningWorker};
use longshore_model::{EndpointId, StopReason};

use crate::harness::{GRACE, Server, eventually, launcher, placement, sh};

#[tokio::test]
async fn a_worker_outlives_the_server_and_is_adopted() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 5").await;
    server.prints(&worker, "one").await;
    drop(server);

    let mut server = Server::on(&dir);
    let present = RunningWorker {
        worker: worker.clone(),
        endpoint: EndpointId::mint(7),
        version: 3,
        is_stopping: false,
        placement: placement(),
        server_url: Some(sh("").server_url),
    };
    assert_eq!(server.adopt().await, [present]);
    fs::write(server.log_path(&worker).unwrap().with_file_name("cwd").join("go"), "").unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.log_tail.as_str()), (Some(5), "one\ntwo"));
    assert_eq!(exited.placement, placement());
}

#[tokio::test]
async fn an_adopted_worker_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("sleep 600").await;
    drop(server);
    let mut server = Server::on(&dir);
    assert_eq!(server.adopt().await.len(), 1);
    server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
    assert_eq!(server.exited().await.signal, Some(15));
    drop(server);
    assert_eq!(Server::on(&dir).adopt().await, [], "the exit was reported");
}

#[tokio::test]
async fn a_stop_that_the_server_did_not_finish_is_finished_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("trap '' TERM; echo ready; while :; do sleep 0.05; done").await;
    server.prints(&worker, "ready").await;
    let hours = Duration::from_hours(1);
    let cut_off = tokio::time::timeout(
        Duration::from_millis(50),
        server.launcher.stop(&worker, hours, &StopReason::Operator),
    )
    .await;
    assert!(cut_off.is_err(), "the worker ignores SIGTERM");
    drop(server);
    let mut server = Server::on(&dir);
    assert!(matches!(&server.adopt().await[..], [RunningWorker { is_stopping: true, .. }]));
    let exited = server.exited().await;
    assert_eq!((exited.worker, exited.signal, exited.expected), (worker, Some(9), true));
}

#[tokio::test]
async fn an_exit_while_the_server_was_away_is_reported_with_its_code() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start("echo last words; while [ ! -e go ]; do sleep 0.02; done; exit 9").await;
    let worker_dir = server.log_path(&worker).unwrap().with_file_name("");
    drop(server);
    fs::write(worker_dir.join("cwd/go"), "").unwrap();
    eventually(|| worker_dir.join("exit.json").exists().then_some(())).await;
    // The shim exits after its last note.
    let mut server = Server::on(&dir);
    server.adopt().await;
    let exited = server.exited().await;
    assert_eq!((exited.worker, exited.code, exited.log_tail.as_str()), (worker, Some(9), "last words"));
}

#[tokio::test]
async fn the_copied_directory_of_a_worker_is_no_worker() {
    let dir = tempfile::tempdir().unwrap();
    let original = dir.path().join("original");
    let first = launcher(&original);
    let spec = sh("exec sleep 1000");
    first.start(spec.clone()).await.unwrap();
    drop(first);
    let copy = dir.path().join("copy");
    let worker_dir = |at: &Path| at.join("live").join(spec.worker.as_str());
    fs::create_dir_all(worker_dir(&copy)).unwrap();
    fs::copy(worker_dir(&original).join("state.json"), worker_dir(&copy).join("state.json")).unwrap();

    let second = launcher(&copy);
    assert_eq!(second.adopt(InstallationId(1)).await.unwrap(), []);
    assert!(!worker_dir(&copy).exists());

    let moved = dir.path().join("moved");
    fs::rename(&original, &moved).unwrap();
    let mut third = Server::of(launcher(&moved));
    assert_eq!(third.adopt().await.len(), 1, "the worker runs, and belongs to the moved directory");
    third.launcher.stop(&spec.worker, GRACE, &StopReason::Operator).await.unwrap();
    third.exited().await;
}
