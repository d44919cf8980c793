//! What the next server finds after the death of an earlier one.

use longshore_launch::{LaunchEvent, RunningWorker, WorkerSpec};
use longshore_model::{StopReason, VolumeId};
use tokio::time::timeout;

use crate::server::{BRIEF, GRACE, IDLE, Server, new_id};
use crate::{Rig, endpoint};

/// No start has more stages.
const STAGES_MAX: usize = 4;

/// The worker of a spec, once it runs.
fn running(spec: &WorkerSpec) -> RunningWorker {
    RunningWorker {
        worker: spec.worker.clone(),
        endpoint: spec.endpoint,
        version: spec.version,
        is_stopping: false,
        placement: spec.placement.clone(),
        server_url: Some(spec.server_url.clone()),
    }
}

pub(crate) async fn the_next_server_finds_what_runs(rig: &dyn Rig) {
    let first = Server::fresh(rig).await;
    let specs = [new_id(), new_id(), new_id()].map(|worker| rig.spec(&worker, IDLE));
    for spec in specs.clone() {
        first.start(spec).await;
    }
    drop(first);
    let mut second = Server::next(rig).await;
    let mut found = second.adopted.clone();
    found.sort_by(|a, b| a.worker.cmp(&b.worker));
    assert_eq!(found, specs.each_ref().map(running));
    assert!(second.exits().is_empty());
    for spec in &specs {
        second.stop(&spec.worker, BRIEF).await;
        let exited = second.exit().await;
        assert_eq!(
            (exited.worker, exited.endpoint, exited.expected),
            (spec.worker.clone(), endpoint(), true)
        );
        assert_eq!(exited.placement, spec.placement);
    }
}

pub(crate) async fn the_workers_of_another_installation_are_left_alone(rig: &dyn Rig) {
    let Some(other) = rig.other_launcher() else { return };
    let mut server = Server::fresh(rig).await;
    let worker = server.start(rig.spec(&new_id(), IDLE)).await;
    let mut stranger = Server::of(other).await;
    assert_eq!(stranger.adopted, []);
    stranger.stop(&worker, BRIEF).await;
    // The same id is another worker there.
    let same = stranger.start(rig.spec(worker.as_str(), IDLE)).await;
    stranger.stop(&same, BRIEF).await;
    stranger.exit().await;
    drop(stranger);
    assert!(server.exits().is_empty(), "it runs");
    drop(server);
    let mut server = Server::next(rig).await;
    assert_eq!(server.adopted.len(), 1);
    server.stop(&worker, BRIEF).await;
    server.exit().await;
}

pub(crate) async fn an_exit_without_a_server_is_reported_by_the_next(rig: &dyn Rig) {
    let first = Server::fresh(rig).await;
    let volume = VolumeId::mint(5);
    first.launcher.make_volume(&volume).await.unwrap();
    let spec = |script| WorkerSpec { volumes: vec![volume], ..rig.spec(&new_id(), script) };
    // The second worker ends when the first one has let go of the pipe between them.
    let pipe = "\"$LONGSHORE_VOLUME_PATH/pipe\"";
    let holds = format!("mkfifo {pipe}; exec 9<>{pipe}; echo ready; exec sleep 600");
    let waits = format!("exec 8<{pipe}; rm {pipe}; echo ready; cat <&8; echo last words; exit 5");
    let killed = first.start(spec(&holds)).await;
    first.prints(&killed, "ready").await;
    let worker = first.start(spec(&waits)).await;
    first.prints(&worker, "ready").await;
    drop(first);
    rig.kill(&killed).await;
    let mut second = Server::next(rig).await;
    let mut exits = [second.exit().await, second.exit().await];
    exits.sort_by_key(|exited| exited.code);
    let [by_signal, by_itself] = exits;
    assert_eq!((by_signal.worker, by_signal.signal, by_signal.expected), (killed, Some(9), false));
    assert_eq!((by_itself.worker, by_itself.code, by_itself.expected), (worker, Some(5), false));
    assert!(by_itself.log_tail.ends_with("last words"), "{}", by_itself.log_tail);
    assert!(second.exits().is_empty());
}

pub(crate) async fn a_stop_that_a_server_began_is_finished_by_the_next(rig: &dyn Rig) {
    let first = Server::fresh(rig).await;
    let script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done";
    let worker = first.start(rig.spec(&new_id(), script)).await;
    first.prints(&worker, "ready").await;
    let stop = {
        let (launcher, worker) = (first.launcher.clone(), worker.clone());
        tokio::spawn(async move { launcher.stop(&worker, GRACE, &StopReason::Idle).await })
    };
    first.prints(&worker, "told").await;
    stop.abort();
    let _ = stop.await;
    drop(first);
    let mut second = Server::next(rig).await;
    assert!(second.adopted.iter().all(|found| found.is_stopping), "{:?}", second.adopted);
    let exited = second.exit().await;
    assert_eq!((exited.worker, exited.expected), (worker, true));
}

pub(crate) async fn a_start_that_is_interrupted_at_any_stage_leaves_one_worker_or_none(rig: &dyn Rig) {
    for stages in 0..=STAGES_MAX {
        let mut first = Server::fresh(rig).await;
        let (launcher, spec) = (first.launcher.clone(), rig.spec(&new_id(), IDLE));
        let worker = spec.worker.clone();
        let start = tokio::spawn(async move { launcher.start(spec).await });
        for _ in 0..stages {
            // A start with fewer stages has ended.
            let next = async {
                while !start.is_finished() {
                    if let Ok(LaunchEvent::Stage { .. }) =
                        timeout(std::time::Duration::from_millis(20), first.event()).await
                    {
                        break;
                    }
                }
            };
            next.await;
        }
        start.abort();
        let _ = start.await;
        drop(first);
        let mut second = Server::next(rig).await;
        match &second.adopted[..] {
            [] => {}
            [found] => {
                assert_eq!(found.worker, worker);
                second.stop(&worker, BRIEF).await;
                assert!(second.exit().await.expected);
            }
            more => panic!("{more:?}"),
        }
        // What was created after the look of the second server is found later.
        crate::server::eventually(async || rig.remains().await.is_empty().then_some(())).await;
        assert!(second.exits().is_empty(), "a worker that never ran does not exit");
    }
}
