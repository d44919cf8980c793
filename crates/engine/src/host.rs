//! What the engine takes from the machine it runs on: the time, chance, and tasks.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use longshore_model::Millis;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::task::JoinHandle;

/// A task of the engine.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The machine that the engine runs on. What is written here is the real one, [`ThisMachine`]; a simulator
/// brings its own.
pub trait Host: Send + Sync + 'static {
    /// What the wall clock shows. It may jump, also back.
    fn wall_clock(&self) -> Millis {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(since_epoch.as_millis() as u64)
    }

    /// 128 random bits, good enough for secrets.
    fn entropy(&self) -> u128 {
        let mut bytes = [0; 16];
        // The kernel's generator fails only before it is seeded, which is long over when a server runs. Should it
        // fail all the same, an id is not worth serving: stop this task.
        SystemRandom::new().fill(&mut bytes).expect("the operating system provides random bytes");
        u128::from_be_bytes(bytes)
    }

    /// Starts a task.
    fn spawn(&self, task: Task) -> JoinHandle<()> {
        tokio::spawn(task)
    }
}

/// The machine that this program runs on.
#[derive(Debug, Default)]
pub struct ThisMachine;

impl Host for ThisMachine {}

/// The engine's time: the wall clock, held still while it steps back.
pub(crate) struct Clock {
    host: Arc<dyn Host>,
    latest_ms: AtomicU64,
}

impl Clock {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, latest_ms: AtomicU64::new(0) }
    }

    /// The present time. Never less than what an earlier call answered.
    pub(crate) fn now(&self) -> Millis {
        let Millis(now_ms) = self.host.wall_clock();
        Millis(self.latest_ms.fetch_max(now_ms, Ordering::Relaxed).max(now_ms))
    }
}
