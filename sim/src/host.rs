//! The computer that a simulated server runs on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longshore_engine::{BoxTask, Runtime};
use longshore_model::Millis;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::rng::Rng;
use crate::scheduler::Process;

/// The engine's runtime: a clock that jumps, seeded random numbers, and the tasks of one server process.
pub struct SimHost {
    clock: Clock,
    process: Process,
    rng: Mutex<Rng>,
}

impl SimHost {
    /// Creates the runtime of one server process.
    pub fn new(clock: Clock, process: Process, rng: Rng) -> Self {
        Self { clock, process, rng: Mutex::new(rng) }
    }
}

impl Runtime for SimHost {
    fn wall_clock(&self) -> Millis {
        Millis(self.clock.now().wall_ms)
    }

    fn monotonic_clock(&self) -> Duration {
        Duration::from_millis(self.clock.now().ms)
    }

    fn entropy(&self) -> u128 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }

    fn spawn(&self, task: BoxTask) -> JoinHandle<()> {
        self.process.spawn(task)
    }
}
