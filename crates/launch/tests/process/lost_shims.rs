//! Workers whose shim was killed.

use std::fs;

use longshore_model::WorkerId;

use crate::harness::{Server, eventually, is_alive};

#[tokio::test]
async fn a_worker_without_its_shim_is_lost_and_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start("echo pid=$$; sleep 600").await;
    let pid = server.printed(&worker, "pid").await;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let shim: i32 = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(shim).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.code, exited.signal), (None, None));
    assert!(!is_alive(&pid));
}

/// The script of a worker that leaves a process in another session, whose parent has exited.
const LEAVES_A_DAEMON: &str =
    "setsid sh -c '(setsid sh -c \"echo child=\\$\\$; exec sleep 600\" &)'; sleep 600";

/// The id of that process, and the shim of the worker.
async fn daemon_and_shim(server: &Server, worker: &WorkerId) -> (String, rustix::process::Pid) {
    let child = server.printed(worker, "child").await;
    let state = fs::read(server.log_path(worker).unwrap().with_file_name("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_slice(&state).unwrap();
    let shim = state["shim"]["pid"].as_i64().unwrap() as i32;
    (child, rustix::process::Pid::from_raw(shim).unwrap())
}

#[tokio::test]
async fn a_process_in_another_session_ends_although_the_shim_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(&dir);
    let worker = server.start(LEAVES_A_DAEMON).await;
    let (child, shim) = daemon_and_shim(&server, &worker).await;
    let mut unrelated = std::process::Command::new("setsid")
        .args(["sleep", "600"])
        .env("LONGSHORE_WORKER_MARK", "1-2-another")
        .spawn()
        .unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    let exited = server.exited().await;
    assert_eq!((exited.worker, exited.code, exited.signal), (worker, None, None));
    assert!(!is_alive(&child), "the child has exited when the exit is reported");
    assert!(unrelated.try_wait().unwrap().is_none(), "a process of another parent goes on");
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

#[tokio::test]
async fn the_next_server_ends_the_processes_of_a_killed_shim() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::on(&dir);
    let worker = server.start(LEAVES_A_DAEMON).await;
    let (child, shim) = daemon_and_shim(&server, &worker).await;
    drop(server);
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    eventually(|| (!is_alive(&shim.to_string())).then_some(())).await;
    let mut server = Server::on(&dir);
    assert_eq!(server.adopt().await, []);
    assert_eq!(server.exited().await.worker, worker);
    assert!(!is_alive(&child));
}
