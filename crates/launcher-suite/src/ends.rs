//! Exits: each is reported once, with its cause.

use longshore_launch::Limits;

use crate::Rig;
use crate::server::{Server, new_id};

/// The memory of a worker that needs more.
const MEMORY_BYTES: u64 = 48 << 20;

pub(crate) async fn an_exit_code_and_the_last_lines_are_reported(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let worker = server.start(rig.spec(&new_id(), "echo out; echo err >&2; exit 3")).await;
    let exited = server.exit().await;
    assert_eq!((exited.worker, exited.code, exited.signal), (worker.clone(), Some(3), None));
    assert!(!exited.expected);
    for line in ["out", "err"] {
        assert!(exited.log_tail.lines().any(|it| it == line), "{}", exited.log_tail);
    }
    assert!(server.exits().is_empty());
    let ended = server.launcher.ended_workers(&crate::endpoint());
    let ended = ended.iter().rfind(|ended| ended.worker == worker).unwrap();
    assert_eq!((ended.code, ended.was_stopped), (Some(3), false));
    assert!(server.log(&worker).contains("out"), "the log stays");
}

pub(crate) async fn a_worker_that_another_process_kills_is_reported_with_the_signal(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let worker = server.start(rig.spec(&new_id(), "echo ready; exec sleep 600")).await;
    server.prints(&worker, "ready").await;
    rig.kill(&worker).await;
    let exited = server.exit().await;
    assert_eq!((exited.worker, exited.code, exited.signal), (worker, None, Some(9)));
    assert!(!exited.expected);
    assert!(server.exits().is_empty());
}

pub(crate) async fn a_worker_without_memory_is_ended_with_the_limit_as_the_cause(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let mut spec = rig.spec(&new_id(), "x=0123456789abcdef; while :; do x=$x$x; done");
    spec.limits = Limits { memory_bytes: Some(MEMORY_BYTES), vcpus: None };
    server.start(spec).await;
    let because = server.exit().await.because.unwrap_or_default();
    assert!(because.contains("out of memory") && because.contains("48 MiB"), "{because}");
}
