//! The logs of workers.

use std::fs;

use longshore_launch::{Launcher as _, RotationLimits, WorkerSpec};
use longshore_model::{EndpointId, StopReason, WorkerId};

use crate::harness::{GRACE, Server, eventually, placement, sh};

#[tokio::test]
async fn a_log_is_rotated() {
    let dir = tempfile::tempdir().unwrap();
    // The line is longer than one read of the pipe.
    let limits = RotationLimits { file_bytes_max: 20_000, files_max: 3 };
    let mut server = Server::with_limits(&dir, limits);
    let script = "i=0; while [ $i -lt 600 ]; do printf 'line %d %0150d\\n' $i 0; i=$((i+1)); done";
    let worker = server.start(script).await;
    let exited = server.exited().await;
    assert!(
        exited.log_tail.starts_with("line 580 ") && exited.log_tail.contains("\nline 599 "),
        "{}",
        exited.log_tail
    );
    let log = server.log_path(&worker).unwrap();
    for name in ["log", "log.1", "log.2"] {
        let bytes = fs::metadata(log.with_file_name(name)).unwrap().len();
        assert!((1..=20_000).contains(&bytes), "{name} has {bytes} bytes");
    }
    assert!(!log.with_file_name("log.3").exists());
}

#[tokio::test]
async fn repeated_lines_are_folded_while_the_server_is_away_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::orphaning(&dir, None);
    let script = "n=0; while :; do echo polling; echo failed; n=$((n+1)); echo step $n; sleep 0.001; done";
    let worker = server.start(script).await;
    server.prints(&worker, "step 50").await;
    let path = server.log_path(&worker).unwrap();
    let log = || fs::read_to_string(&path).unwrap();
    assert!(log().matches("polling\n").count() >= 50, "all is written while the server is there");
    drop(server);
    let steps = |log: &str| log.matches("step ").count();
    // The shim has checked by then: it left out fewer lines than were printed.
    let left_out = |log: &str| steps(log).saturating_sub(log.matches("polling\n").count());
    eventually(|| (left_out(&log()) > 200).then_some(())).await;
    let server = Server::on(&dir);
    server.adopt().await;
    let log = eventually(|| Some(log()).filter(|log| log.contains(" more times: polling\n"))).await;
    assert!(log.contains(" more times: failed\n"));
    server.launcher.stop(&worker, GRACE, &StopReason::Operator).await.unwrap();
}

#[tokio::test]
async fn a_log_is_found_by_its_own_endpoint_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let (own, other) = (EndpointId::mint(7), EndpointId::mint(8));
    let worker = server.start("echo hello; while [ ! -e go ]; do sleep 0.02; done").await;
    server.prints(&worker, "hello").await;
    let live = server.launcher.worker_log(&own, &worker).unwrap();
    assert!(live.is_live);
    assert_eq!(server.launcher.worker_log(&other, &worker), None);
    assert_eq!(
        (server.launcher.worker_logs(), server.launcher.ended_workers(&own)),
        (vec![live.clone()], vec![])
    );

    fs::write(live.path.with_file_name("cwd").join("go"), "").unwrap();
    server.exited().await;
    let ended = server.launcher.worker_log(&own, &worker).unwrap();
    assert!(!ended.is_live);
    assert_eq!(fs::read_to_string(&ended.path).unwrap(), "hello\n");
    assert_eq!(server.launcher.worker_log(&other, &worker), None);
    assert_eq!(server.launcher.worker_logs(), [ended]);
    let ended_ids = |endpoint: &EndpointId| -> Vec<WorkerId> {
        server.launcher.ended_workers(endpoint).into_iter().map(|ended| ended.worker).collect()
    };
    assert_eq!((ended_ids(&own), ended_ids(&other)), (vec![worker.clone()], vec![]));
    let noted = &server.launcher.ended_workers(&own)[0];
    assert_eq!((noted.code, noted.signal, noted.was_stopped), (Some(0), None, false));
    assert_eq!(noted.stop_reason, None);
    assert_eq!(noted.placement, placement());
    assert!(noted.ended_at > noted.placement.started_at, "{noted:?}");
}

#[tokio::test]
async fn only_the_logs_of_the_last_workers_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    for n in 0..12 {
        let spec = WorkerSpec { worker: format!("wk-{n}").parse().unwrap(), ..sh("echo hello") };
        server.launcher.start(spec).await.unwrap();
        server.exited().await;
    }
    let kept = |n: u32| server.log_path(&format!("wk-{n}").parse().unwrap()).is_some();
    assert_eq!((0..12).map(kept).collect::<Vec<_>>(), [[false; 2].as_slice(), &[true; 10]].concat());
    for _ in 0..2 {
        server.launcher.forget(&EndpointId::mint(7)).await.unwrap();
    }
    assert!(!(0..12).any(kept), "nothing is kept of a deleted endpoint");
}
