//! The computer that a simulated server runs on.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use longshore_engine::{BoxTask, Runtime};
use longshore_model::Millis;
use longshore_postgres::{DatabaseClock, ServingRight};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::rng::Rng;
use crate::scheduler::Process;

/// The engine's runtime: a clock that jumps, seeded random numbers, and the tasks of one server process.
pub struct SimHost {
    clock: Clock,
    process: Process,
    rng: Mutex<Rng>,
    /// How far the wall clock of this computer is ahead of the world's, in ms.
    skew_ms: i64,
    /// The clock of the database and the right to act, for the owner of a cluster.
    owned: OnceLock<(DatabaseClock, ServingRight)>,
}

impl SimHost {
    /// Creates the runtime of one server process.
    pub fn new(clock: Clock, process: Process, rng: Rng) -> Self {
        Self { clock, process, rng: Mutex::new(rng), skew_ms: 0, owned: OnceLock::new() }
    }

    /// As [`SimHost::new`], on a computer whose wall clock is ahead by `skew_ms`, or behind.
    pub fn skewed(clock: Clock, process: Process, rng: Rng, skew_ms: i64) -> Self {
        Self { skew_ms, ..Self::new(clock, process, rng) }
    }
}

impl SimHost {
    /// The engine decides by the clock of the database from now on, and acts while the right lasts, as that of a cluster's owner
    /// does.
    pub fn own(&self, clock: DatabaseClock, right: ServingRight) {
        // A node becomes the owner once.
        let _ = self.owned.set((clock, right));
    }
}

impl Runtime for SimHost {
    fn wall_clock(&self) -> Millis {
        let own = || Millis(self.clock.now().wall_ms.saturating_add_signed(self.skew_ms));
        self.owned.get().and_then(|(clock, _)| clock.now()).unwrap_or_else(own)
    }

    fn monotonic_clock(&self) -> Duration {
        Duration::from_millis(self.clock.now().ms)
    }

    fn may_act(&self) -> bool {
        self.owned.get().is_none_or(|(_, right)| right.lasts())
    }

    fn entropy(&self) -> u128 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }

    fn spawn(&self, task: BoxTask) -> JoinHandle<()> {
        self.process.spawn(task)
    }
}
