//! What workers get and what they leave: logs, variables, volumes.

use std::time::Duration;

use longshore_model::VolumeId;

use crate::Rig;
use crate::server::{Server, new_id};

/// How many lines a worker prints while servers die.
const LINES: usize = 3_000;
/// How many servers die meanwhile.
const DEATHS: u32 = 3;

pub(crate) async fn the_log_has_each_line_once_across_servers(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let script = format!(
        "i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); [ $((i%50)) != 0 ] || sleep 0.02; done; echo end; exec sleep 600"
    );
    let worker = server.start(rig.spec(&new_id(), &script)).await;
    for death in 1..=DEATHS {
        server.prints(&worker, &format!("line {}\n", death * 300)).await;
        drop(server);
        server = Server::next(rig).await;
        assert_eq!(server.adopted.len(), 1);
    }
    let log = server.prints(&worker, "end\n").await;
    let lines: Vec<String> = (0..LINES).map(|n| format!("line {n}\n")).collect();
    let expected = lines.concat() + "end\n";
    assert!(log == expected, "lost or repeated lines: {} of {} bytes", log.len(), expected.len());
    server.stop(&worker, Duration::from_secs(1)).await;
    server.exit().await;
}

pub(crate) async fn values_of_variables_reach_the_worker_and_no_other(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let mut spec =
        rig.spec(&new_id(), "[ \"${TOKEN%711}\" = \"value 4\" ] && echo the right one; exec sleep 600");
    spec.env.insert("TOKEN".to_owned(), "value 4711".to_owned());
    let worker = server.start(spec).await;
    server.prints(&worker, "the right one").await;
    assert!(!rig.traces().await.contains("4711"));
    server.stop(&worker, Duration::from_secs(1)).await;
    server.exit().await;
}

pub(crate) async fn a_volume_keeps_what_a_worker_wrote(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let volume = VolumeId::mint(4);
    server.launcher.make_volume(&volume).await.unwrap();
    let scripts = ["echo weights > \"$LONGSHORE_VOLUME_PATH/w\"", "cat \"$LONGSHORE_VOLUME_PATH/w\""];
    for script in scripts {
        let mut spec = rig.spec(&new_id(), script);
        spec.volumes = vec![volume];
        server.start(spec).await;
        let exited = server.exit().await;
        assert_eq!(exited.code, Some(0), "{}", exited.log_tail);
        if script.starts_with("cat") {
            assert_eq!(exited.log_tail.trim(), "weights");
        }
    }
}
