//! Starts: they run a worker, or fail and leave nothing.

use longshore_launch::RegistryLogin;

use crate::server::{BRIEF, IDLE, Server, new_id};
use crate::{Rig, plain_spec};

/// How many workers start concurrently.
const CROWD: usize = 20;

pub(crate) async fn a_worker_runs_until_it_is_stopped(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let spec = rig.spec(&new_id(), IDLE);
    let placement = spec.placement.clone();
    let worker = server.start(spec).await;
    assert!(server.exits().is_empty(), "it runs");
    assert!(!rig.remains().await.is_empty());
    server.stop(&worker, BRIEF).await;
    assert!(rig.remains().await.is_empty(), "after the stop nothing of it exists but its log");
    let exited = server.exit().await;
    assert_eq!((&exited.worker, exited.endpoint), (&worker, crate::endpoint()));
    assert!(exited.expected);
    assert_eq!(exited.placement, placement);
    assert!(server.exits().is_empty(), "an exit is reported once");
}

pub(crate) async fn events_are_given_once(rig: &dyn Rig) {
    let server = Server::fresh(rig).await;
    assert!(server.launcher.events().is_none());
}

pub(crate) async fn what_cannot_start_says_why_and_leaves_nothing(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    for (spec, words) in rig.impossible() {
        let worker = spec.worker.clone();
        let started = server.launcher.start(spec).await;
        let Err(error) = started else { panic!("{worker} was started") };
        let error = error.to_string();
        assert!(error.contains(words), "{words}: {error}");
        assert_eq!(rig.remains().await, [] as [&str; 0], "{words}");
        assert!(server.launcher.worker_log(&crate::endpoint(), &worker).is_none(), "{words}");
    }
    assert!(server.exits().is_empty(), "a worker that was not started does not exit");
}

pub(crate) async fn twenty_workers_start_and_stop_concurrently(rig: &dyn Rig) {
    let mut server = Server::fresh(rig).await;
    let starts: Vec<_> = (0..CROWD)
        .map(|_| {
            let (launcher, spec) = (server.launcher.clone(), rig.spec(&new_id(), IDLE));
            tokio::spawn(async move {
                let worker = spec.worker.clone();
                launcher.start(spec).await.map(|()| worker)
            })
        })
        .collect();
    let mut workers = Vec::new();
    for start in starts {
        workers.push(start.await.unwrap().unwrap());
    }
    assert!(server.exits().is_empty());
    let stops: Vec<_> = workers
        .iter()
        .map(|worker| {
            let (launcher, worker) = (server.launcher.clone(), worker.clone());
            tokio::spawn(
                async move { launcher.stop(&worker, BRIEF, &longshore_model::StopReason::Idle).await },
            )
        })
        .collect();
    for stop in stops {
        stop.await.unwrap().unwrap();
    }
    let mut ended = Vec::new();
    for _ in 0..CROWD {
        ended.push(server.exit().await.worker);
    }
    ended.sort();
    workers.sort();
    assert_eq!(ended, workers);
    assert!(server.exits().is_empty());
}

pub(crate) async fn no_secret_is_in_a_spec_as_text(rig: &dyn Rig) {
    let mut spec = rig.spec(&new_id(), IDLE);
    spec.env.insert("TOKEN".to_owned(), "value-4711".to_owned());
    spec.registry_login = Some(RegistryLogin { username: "ada".into(), password: "word-4711".into() });
    let text = format!("{spec:?} {:?}", plain_spec("wk-0"));
    assert!(text.contains("TOKEN") && text.contains("ada"), "{text}");
    assert!(!text.contains("4711"), "{text}");
}
