//! Runs one world from its seed to the auditor's result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{
    MemoryWebhookLog, TransportError, TransportFuture, TransportResponse, WebhookTransport,
};
use tokio::time::sleep;

use crate::auditor::{Auditor, Transition, Violation};
use crate::clock::Clock;
use crate::cluster::{self, SharedParts};
use crate::disk::Disk;
use crate::endpoints::Endpoints;
use crate::faults::{Fault, Faults};
use crate::network::Network;
use crate::observation::Observation;
use crate::receivers::Receivers;
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::scheduler::Scheduler;
use crate::server::{self, LauncherOf, ServerMachine};
use crate::settings::ServerSettings;
use crate::world::World;
use crate::{clients, keys, launcher, operator, redeliverer, workers};

/// Default steps of a world until the faults stop.
pub const STEPS: u64 = 50_000;
/// Duration of the phase without faults. Longer than every timeout: a late server waits 10 min for an adopted worker that
/// never pings, because it may be loading a model.
const QUIET_PHASE: Duration = Duration::from_mins(40);
/// Most steps of the phase without faults; a world with more never comes to rest.
const QUIET_STEPS_MAX: u64 = 1_000_000;
/// Most steps without passing time; more mean a task that loops.
const INSTANT_STEPS_MAX: u64 = 20_000;
/// Longest time between two jumps of the wall clock, in ms.
const JUMP_INTERVAL_MS_MAX: u64 = 120_000;
/// Longest jump, in ms.
const JUMP_MS_MAX: u64 = 7_200_000;

/// What answers in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorldKind {
    /// One server with a disk of its own.
    #[default]
    Server,
    /// Several nodes on one database.
    Cluster,
}

/// The result of one world.
pub struct WorldResult {
    /// The seed of the world.
    pub seed: u64,
    /// Number of polls of the world's tasks.
    pub steps: u64,
    /// Duration of the world in simulated milliseconds.
    pub ms: u64,
    /// How often each kind of fault was injected.
    pub faults: Vec<(Fault, u64)>,
    /// How often each promise was checked.
    pub checked: Vec<(&'static str, u64)>,
    /// How often each transition of a job's state was certainly observed.
    pub transitions: Vec<(Transition, u64)>,
    /// The broken promises, in order of detection.
    pub violations: Vec<Violation>,
    /// All events, one per line; empty without tracing.
    pub trace: String,
}

/// Runs the world of a seed: `steps` with faults, then a phase without faults in which everything must come to
/// rest.
///
/// # Panics
///
/// If the operating system cannot provide a timer.
pub fn run_world(seed: u64, steps: u64, traced: bool) -> WorldResult {
    run_world_with(&[], seed, steps, traced)
}

/// Runs the world of a seed with these fault rates instead of the seed's.
///
/// # Panics
///
/// If the operating system cannot provide a timer.
pub fn run_world_with(rates: &[(Fault, f64)], seed: u64, steps: u64, traced: bool) -> WorldResult {
    run_world_of(WorldKind::Server, rates, seed, steps, traced)
}

/// Runs the world of a seed and a kind with these fault rates instead of the seed's.
///
/// # Panics
///
/// If the operating system cannot provide a timer.
pub fn run_world_of(
    kind: WorldKind,
    rates: &[(Fault, f64)],
    seed: u64,
    steps: u64,
    traced: bool,
) -> WorldResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime
        .expect("a runtime without I/O needs nothing that could be missing")
        .block_on(run(kind, rates, seed, steps, traced))
}

async fn run(kind: WorldKind, rates: &[(Fault, f64)], seed: u64, steps: u64, traced: bool) -> WorldResult {
    let mut rng = Rng::new(seed);
    let settings = ServerSettings::draw(&mut rng);
    let world = create(kind, &mut rng, &settings, traced);
    if kind == WorldKind::Cluster {
        world.faults.set(&cluster::rates(&mut rng));
    }
    world.faults.set(rates);
    populate(kind, &world, &mut rng, settings);
    let mut comes_to_rest = run_steps(&world, steps).await;
    world.faults.end();
    world.record.observe(&Observation::QuietPhaseBegan);
    if comes_to_rest {
        // Whichever comes first: a world that never rests would never reach the end of the time.
        comes_to_rest = tokio::select! {
            biased;
            _ = run_steps(&world, QUIET_STEPS_MAX) => false,
            () = sleep(QUIET_PHASE) => true,
        };
    }
    world.record.observe(&Observation::End);
    // The server holds the receivers, which hold the world with its network: this breaks the cycle.
    world.network.connect(None);
    result_of(seed, &world, comes_to_rest)
}

/// Returns after `steps` more steps. Returns false if no time passed, because a task loops without waiting.
async fn run_steps(world: &World, steps: u64) -> bool {
    let end = world.tasks.steps() + steps;
    while world.tasks.steps() < end {
        let (began, slice_end) = (world.clock.now().ms, world.tasks.steps() + INSTANT_STEPS_MAX);
        world.tasks.reach(slice_end.min(end)).await;
        if slice_end <= end && world.clock.now().ms == began {
            return false;
        }
    }
    true
}

fn create(kind: WorldKind, rng: &mut Rng, settings: &ServerSettings, traced: bool) -> World {
    let clock = Clock::default();
    let faults = Faults::draw(rng);
    let tasks = match kind {
        WorldKind::Server => Scheduler::new(rng),
        WorldKind::Cluster => Scheduler::in_rounds(rng),
    };
    let rules = match kind {
        WorldKind::Server => settings.into(),
        WorldKind::Cluster => cluster::rules(&settings.into()),
    };
    let record = Recorder::new(clock.clone(), Auditor::new(rules), traced);
    let network = Network::new(rng, faults.clone(), record.clone());
    World { clock, faults, tasks, record, network }
}

fn populate(kind: WorldKind, world: &World, rng: &mut Rng, settings: ServerSettings) {
    let disk = Disk::new(rng, world.faults.clone(), world.record.clone());
    let workers = launcher::WorkerMachine::new(world, rng);
    let launcher: LauncherOf = Box::new(move |server| Arc::new(workers.launcher(server)));
    let post = Arc::new(WebhookNetwork { receivers: Receivers::new(world, rng) });
    let hook_log = Arc::new(MemoryWebhookLog::default());
    let endpoints = Endpoints::default();
    operator::start(world, rng, keys::OPERATOR_KEY, &endpoints);
    workers::start(world, rng, endpoints.clone());
    clients::start(world, rng, &keys::client_keys(), &endpoints);
    let environment = world.tasks.process();
    match kind {
        WorldKind::Server => {
            let machine = ServerMachine { disk, launcher, post, hook_log, settings };
            environment.spawn(server::keep(world.clone(), machine, rng.fork()));
        }
        WorldKind::Cluster => {
            let parts = SharedParts { objects: disk, launcher, post, hook_log, settings };
            cluster::start(world, &mut rng.fork(), parts);
        }
    }
    environment.spawn(jump_clocks(world.clone(), rng.fork()));
    redeliverer::start(world, rng.clone(), keys::OPERATOR_KEY, &endpoints);
}

/// Sets the wall clock of the server's computer from time to time.
async fn jump_clocks(world: World, mut rng: Rng) {
    loop {
        sleep(Duration::from_millis(rng.skewed(1_000..=JUMP_INTERVAL_MS_MAX))).await;
        let by_ms = rng.skewed(1..=JUMP_MS_MAX) as i64;
        if world.faults.inject(Fault::ClockForward) {
            world.clock.jump(by_ms);
            world.record.observe(&Observation::ClockSet);
        }
        if world.faults.inject(Fault::ClockBack) {
            world.clock.jump(-by_ms);
            world.record.observe(&Observation::ClockSet);
        }
    }
}

fn result_of(seed: u64, world: &World, comes_to_rest: bool) -> WorldResult {
    let at = world.clock.now();
    let mut violations = world.record.auditor(|auditor| auditor.violations().to_vec());
    if !comes_to_rest {
        let text = format!("{} steps were not enough", world.tasks.steps());
        violations.push(Violation { at, promise: "comes to rest", text });
    }
    if world.tasks.panics() > 0 {
        let text = format!("{} tasks panicked", world.tasks.panics());
        violations.push(Violation { at, promise: "never panics", text });
    }
    WorldResult {
        seed,
        steps: world.tasks.steps(),
        ms: at.ms,
        faults: world.faults.counts(),
        checked: world.record.auditor(Auditor::checked),
        transitions: world.record.auditor(Auditor::transitions),
        violations,
        trace: world.record.take_trace(),
    }
}

/// Carries webhook calls from the server to the receivers.
struct WebhookNetwork {
    receivers: Receivers,
}

impl WebhookTransport for WebhookNetwork {
    fn post(&self, call: http::Request<Bytes>) -> TransportFuture<'_> {
        Box::pin(async move {
            let status = self.receivers.deliver(call).await.map_err(TransportError::NoResponse)?;
            Ok(TransportResponse { status, body: Bytes::new() })
        })
    }
}
