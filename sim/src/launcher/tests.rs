//! The contract of a launcher, also across deaths of servers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use longshore_launch::{InstallationId, LaunchEvent, Launcher, RunningWorker, WorkerExit, WorkerSpec};
use longshore_launcher_suite::{Abilities, Rig, RigFuture, check, plain_spec};
use longshore_model::{ComputeType, Placement, StopReason, WorkerId};
use tokio::time::{Instant, timeout};

use super::{GRACE_LEFT, MACHINE, ServerAttachment, SimLauncher, WorkerMachine};
use crate::fixture::{quiet_world, serve};
use crate::scheduler::Process;
use crate::workers::tests::variables;
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);

fn spec(worker: &str) -> WorkerSpec {
    WorkerSpec {
        worker: worker.parse().unwrap(),
        endpoint: "abcdefghijklm1".parse().unwrap(),
        version: 3,
        image: String::new(),
        registry_login: None,
        entrypoint: vec!["worker".to_owned()],
        cmd: vec![],
        server_url: String::new(),
        code: None,
        workdir: None::<PathBuf>,
        volumes: vec![],
        env: variables(worker),
        private_home: false,
        compute_type: ComputeType::Cpu,
        placement: Placement::default(),
        limits: longshore_launch::Limits::default(),
        flashboot: false,
        secret_variables: BTreeSet::new(),
        disk_bytes: None,
    }
}

fn present(worker: &str) -> RunningWorker {
    let WorkerSpec { worker, endpoint, version, placement, server_url, .. } = spec(worker);
    let server_url = Some(server_url);
    RunningWorker { worker, endpoint, version, is_stopping: false, placement, server_url }
}

/// A computer with a server that has adopted its workers.
async fn machine() -> (World, WorkerMachine, Process, SimLauncher) {
    let (world, mut rng) = quiet_world(7);
    serve(&world, |_, _, _| (204, String::new()));
    let machine = WorkerMachine::new(&world, &mut rng);
    let server = world.tasks.process();
    let launcher = machine.launcher(&server);
    assert_eq!(launcher.adopt(InstallationId(1)).await.unwrap(), []);
    (world, machine, server, launcher)
}

/// Replaces the server by a new one that has not adopted the workers yet.
fn next_server(world: &World, machine: &WorkerMachine, server: &Process) -> (Process, SimLauncher) {
    server.kill();
    let server = world.tasks.process();
    let launcher = machine.launcher(&server);
    (server, launcher)
}

async fn exit(launcher: &SimLauncher) -> WorkerExit {
    let mut events = launcher.events().unwrap();
    match timeout(60 * SECOND, events.recv()).await.unwrap().unwrap() {
        LaunchEvent::Exited(exited) => exited,
        event => panic!("{event:?} is no exit"),
    }
}

fn hang(machine: &WorkerMachine, worker: &WorkerId) {
    machine.state().entries[worker].worker.hang();
}

#[tokio::test(start_paused = true)]
async fn the_next_server_finds_running_workers_and_ends_of_others() {
    let (world, machine, server, first) = machine().await;
    for worker in ["w1", "w2"] {
        first.start(spec(worker)).await.unwrap();
    }
    let (_server, second) = next_server(&world, &machine, &server);
    machine.state().entries[&"w1".parse().unwrap()].worker.clone().kill();
    assert_eq!(second.adopt(InstallationId(1)).await.unwrap(), [present("w2")]);
    let exited = exit(&second).await;
    assert_eq!((exited.worker.as_str(), exited.signal, exited.expected), ("w1", Some(9), false));
    assert!(second.events().is_none(), "they can be taken once");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_hangs_is_killed_after_its_grace() {
    let (_world, machine, _server, launcher) = machine().await;
    launcher.start(spec("w1")).await.unwrap();
    let id: WorkerId = "w1".parse().unwrap();
    hang(&machine, &id);
    let began = Instant::now();
    launcher.stop(&id, 7 * SECOND, &StopReason::Operator).await.unwrap();
    assert_eq!(began.elapsed(), 7 * SECOND);
    let exited = exit(&launcher).await;
    assert_eq!((exited.code, exited.signal, exited.expected), (None, Some(9), true));
    launcher.stop(&id, SECOND, &StopReason::Operator).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_the_server_does_not_survive_is_seen_through_by_the_next() {
    let (world, machine, server, first) = machine().await;
    first.start(spec("w1")).await.unwrap();
    let id: WorkerId = "w1".parse().unwrap();
    hang(&machine, &id);
    timeout(SECOND, first.stop(&id, 20 * SECOND, &StopReason::Operator)).await.unwrap_err();
    let (_server, second) = next_server(&world, &machine, &server);
    let going = RunningWorker { is_stopping: true, ..present("w1") };
    assert_eq!(second.adopt(InstallationId(1)).await.unwrap(), [going]);
    let began = Instant::now();
    let exited = exit(&second).await;
    assert!(exited.expected);
    assert!(began.elapsed() >= GRACE_LEFT);
}

#[tokio::test(start_paused = true)]
async fn a_start_goes_on_without_the_server_until_the_next_one_looks() {
    let (world, machine, server, first) = machine().await;
    timeout(Duration::ZERO, first.start(spec("w1"))).await.unwrap_err();
    let (server, second) = next_server(&world, &machine, &server);
    tokio::time::sleep(SECOND).await;
    assert_eq!(second.adopt(InstallationId(1)).await.unwrap(), [present("w1")]);

    timeout(Duration::ZERO, second.start(spec("w2"))).await.unwrap_err();
    let (_server, third) = next_server(&world, &machine, &server);
    assert_eq!(third.adopt(InstallationId(1)).await.unwrap(), [present("w1")], "w2 had not begun");
    tokio::time::sleep(SECOND).await;
    assert_eq!(machine.state().entries.len(), 1, "w2 never begins");
}

/// A simulated computer, and the server that has the launcher of now.
struct SimulatedComputer {
    world: World,
    machine: WorkerMachine,
    server: Mutex<Process>,
    launcher: Mutex<Weak<SimLauncher>>,
}

impl SimulatedComputer {
    fn new(world: World, machine: WorkerMachine) -> Self {
        let server = Mutex::new(world.tasks.process());
        Self { world, machine, server, launcher: Mutex::default() }
    }
}

/// Cuts a computer off from its server, or connects it again.
fn set_away(launcher: &SimLauncher, is_away: bool) {
    let ServerAttachment { machine, sender, .. } = &launcher.attachment;
    if is_away {
        machine.shared.away.send_replace(true);
    }
    for entry in machine.state().entries.values() {
        let RunningWorker { worker, endpoint, .. } = entry.present.clone();
        let name = MACHINE.to_owned();
        let event = if is_away {
            LaunchEvent::Away { worker, endpoint, machine: name }
        } else {
            LaunchEvent::Back { worker, endpoint }
        };
        sender.send(event).unwrap();
    }
    if !is_away {
        machine.shared.away.send_replace(false);
    }
}

impl Rig for SimulatedComputer {
    fn abilities(&self) -> Abilities {
        Abilities { stages: true, away: true, ..Abilities::default() }
    }

    fn next_launcher(&self) -> Arc<dyn Launcher> {
        let mut server = self.server.lock().unwrap();
        let (next, launcher) = next_server(&self.world, &self.machine, &server);
        *server = next;
        let launcher = Arc::new(launcher);
        *self.launcher.lock().unwrap() = Arc::downgrade(&launcher);
        launcher
    }

    fn spec(&self, worker: &str, _script: &str) -> WorkerSpec {
        WorkerSpec { env: variables(worker), ..plain_spec(worker) }
    }

    fn kill<'a>(&'a self, worker: &'a WorkerId) -> RigFuture<'a, ()> {
        Box::pin(async { self.machine.state().entries[worker].worker.clone().kill() })
    }

    fn set_away(&self, is_away: bool) {
        if let Some(launcher) = self.launcher.lock().unwrap().upgrade() {
            set_away(&launcher, is_away);
        }
    }

    fn remains(&self) -> RigFuture<'_, Vec<String>> {
        Box::pin(async { self.machine.state().entries.keys().map(ToString::to_string).collect() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_launcher_whose_starts_take_minutes_keeps_the_contract() {
    let (world, mut rng) = quiet_world(7);
    serve(&world, |_, _, _| (204, String::new()));
    let machine = WorkerMachine::with_slow_starts(&world, &mut rng, 1.0, 170_000);
    check(&SimulatedComputer::new(world, machine), |_| {}).await;
}

#[tokio::test(start_paused = true)]
async fn the_simulated_launcher_keeps_the_contract_of_all_launchers() {
    let (world, machine, _server, first) = machine().await;
    drop(first);
    check(&SimulatedComputer::new(world, machine), |_| {}).await;
}
