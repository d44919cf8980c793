//! One world, from its seed to the auditor's verdict.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_engine::{Post, PostFuture};
use tokio::time::sleep;

use crate::auditor::{Auditor, Violation};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::disk::Disk;
use crate::faults::{Fault, Faults};
use crate::network::Network;
use crate::record::Record;
use crate::seen::Seen;
use crate::server::{self, Machine};
use crate::settings::ServerSettings;
use crate::tasks::Tasks;
use crate::world::World;

/// Steps of a world before it calms down, where nobody says.
pub const STEPS: u64 = 20_000;
/// How often to look whether there were enough steps.
const LOOK: Duration = Duration::from_secs(1);
/// How long a world lasts when nothing goes wrong any more.
const CALM: Duration = Duration::from_mins(20);
/// A world that needs more steps than this to come to rest is running in circles.
const CALM_STEPS_MAX: u64 = 5_000_000;
/// The longest time between two jumps of the wall clock.
const JUMP_EVERY_MS_MAX: u64 = 600_000;
/// The longest jump.
const JUMP_MS_MAX: u64 = 7_200_000;

/// What became of a world.
pub struct Outcome {
    /// Its seed.
    pub seed: u64,
    /// Polls of its tasks.
    pub steps: u64,
    /// Simulated milliseconds.
    pub ms: u64,
    /// How often each kind of fault struck.
    pub faults: Vec<(Fault, u64)>,
    /// What was not as promised.
    pub violations: Vec<Violation>,
    /// Everything that happened, if it was asked for.
    pub trace: String,
}

/// Lives through the world of a seed: `steps` with faults, then a calm time in which everything must come to rest.
///
/// # Panics
/// If the operating system cannot provide a timer.
pub fn live(seed: u64, steps: u64, traced: bool) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime
        .expect("a runtime without I/O needs nothing that could be missing")
        .block_on(run(seed, steps, traced))
}

async fn run(seed: u64, steps: u64, traced: bool) -> Outcome {
    let mut dice = Dice::new(seed);
    let world = create(&mut dice, traced);
    populate(&world, &mut dice);
    while world.tasks.steps() < steps && world.record.auditor(|auditor| auditor.violations().is_empty()) {
        sleep(LOOK).await;
    }
    world.faults.end();
    world.record.see(&Seen::Calm);
    let rest = tokio::time::Instant::now() + CALM;
    let steps_max = world.tasks.steps() + CALM_STEPS_MAX;
    while tokio::time::Instant::now() < rest && world.tasks.steps() < steps_max {
        sleep(LOOK).await;
    }
    world.record.see(&Seen::End);
    verdict(seed, &world, steps_max)
}

fn create(dice: &mut Dice, traced: bool) -> World {
    let clock = Clock::default();
    let faults = Faults::draw(dice);
    let tasks = Tasks::new(dice);
    let record = Record::new(clock.clone(), Auditor::default(), traced);
    let network = Network::new(dice, faults.clone(), record.clone());
    World { clock, faults, tasks, record, network }
}

fn populate(world: &World, dice: &mut Dice) {
    let settings = ServerSettings::draw(dice);
    let disk = Disk::new(dice, world.faults.clone(), world.record.clone());
    let machine = Machine {
        disk,
        launcher: Box::new(|_| Arc::new(longshore_launch::MemoryLauncher::default())),
        post: Arc::new(Receivers { world: world.clone() }),
        settings,
    };
    let nature = world.tasks.process();
    nature.spawn(server::keep(world.clone(), machine, dice.fork()));
    nature.spawn(jump_clocks(world.clone(), dice.fork()));
}

/// The wall clock of the server's machine is set, or wakes up.
async fn jump_clocks(world: World, mut dice: Dice) {
    loop {
        sleep(Duration::from_millis(dice.skewed(1_000..=JUMP_EVERY_MS_MAX))).await;
        let by_ms = dice.skewed(1..=JUMP_MS_MAX) as i64;
        if world.faults.strike(Fault::ClockForward) {
            world.clock.jump(by_ms);
        }
        if world.faults.strike(Fault::ClockBack) {
            world.clock.jump(-by_ms);
        }
    }
}

fn verdict(seed: u64, world: &World, steps_max: u64) -> Outcome {
    let at = world.clock.now();
    let mut violations = world.record.auditor(|auditor| auditor.violations().to_vec());
    if world.tasks.steps() >= steps_max {
        let text = format!("{CALM_STEPS_MAX} steps of calm were not enough");
        violations.push(Violation { at, promise: "comes to rest", text });
    }
    if world.tasks.panics() > 0 {
        let text = format!("{} tasks panicked", world.tasks.panics());
        violations.push(Violation { at, promise: "never panics", text });
    }
    Outcome {
        seed,
        steps: world.tasks.steps(),
        ms: at.ms,
        faults: world.faults.counts(),
        violations,
        trace: world.record.take_trace(),
    }
}

/// Carries webhook calls from the server to the receivers.
struct Receivers {
    world: World,
}

impl Post for Receivers {
    fn post(&self, call: http::Request<Bytes>) -> PostFuture<'_> {
        let _ = (&self.world, call);
        Box::pin(async { Ok(http::StatusCode::OK) })
    }
}
