//! A machine with workers that does not answer for a time.

use longshore_launch::{LaunchEvent, RunningWorker};
use tokio::time::timeout;

use crate::Rig;
use crate::server::{BRIEF, IDLE, Server, new_id};

pub(crate) async fn nothing_ends_while_a_machine_is_away_and_what_ended_is_told_afterwards(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let [stays, ends] = [new_id(), new_id()].map(|worker| rig.spec(&worker, IDLE));
    for spec in [&stays, &ends] {
        server.start(spec.clone()).await;
    }
    server.exits();
    rig.set_away(true);
    let mut told = Vec::new();
    while told.len() < 2 {
        let LaunchEvent::Away { worker, machine, .. } = server.event().await else { continue };
        assert!(!machine.is_empty());
        told.push(worker);
    }
    assert!(told.contains(&stays.worker) && told.contains(&ends.worker), "{told:?}");

    let refused = server.launcher.start(rig.spec(&new_id(), IDLE)).await.unwrap_err();
    assert!(refused.to_string().contains("away"), "{refused}");
    rig.kill(&ends.worker).await;
    let stop = server.stop(&stays.worker, BRIEF);
    assert!(timeout(BRIEF * 5, stop).await.is_err(), "it is unknown whether the worker runs");
    assert!(server.exits().is_empty(), "no end is known");

    rig.set_away(false);
    let (mut back, mut exits) = (Vec::new(), Vec::new());
    while exits.len() < 2 {
        match server.event().await {
            LaunchEvent::Back { worker, .. } => back.push(worker),
            LaunchEvent::Exited(exited) => {
                assert!(back.contains(&exited.worker), "first the machine is back");
                exits.push((exited.worker == stays.worker, exited.expected));
            }
            _ => {}
        }
    }
    exits.sort_unstable();
    assert_eq!(exits, [(false, false), (true, true)], "only one was stopped");
    drop(server);
    let next: Vec<RunningWorker> = Server::next(rig).await.adopted;
    assert_eq!(next, []);
}
