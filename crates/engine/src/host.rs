//! What the engine takes from the machine it runs on: the time, chance, and tasks.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use longshore_model::Millis;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::task::JoinHandle;
use tokio::time::Instant;

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

/// The engine's time: the wall clock, but it goes on at its own pace where that one steps back. Held still instead,
/// no worker would be missed and no job time out until the wall clock has caught up.
pub(crate) struct Clock {
    host: Arc<dyn Host>,
    began: Instant,
    /// What the wall clock showed when this one began, and all that it was put forward since.
    began_ms: AtomicU64,
}

impl Clock {
    pub(crate) fn new(host: Arc<dyn Host>) -> Self {
        Self { host, began: Instant::now(), began_ms: AtomicU64::new(0) }
    }

    /// The present time. Never less than what an earlier call answered.
    pub(crate) fn now(&self) -> Millis {
        let passed_ms = self.began.elapsed().as_millis() as u64;
        let began_ms = self.host.wall_clock().0.saturating_sub(passed_ms);
        Millis(passed_ms + self.began_ms.fetch_max(began_ms, Ordering::Relaxed).max(began_ms))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    struct SetClock(AtomicU64);

    impl Host for SetClock {
        fn wall_clock(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_while_the_wall_clock_is_behind() {
        let host = Arc::new(SetClock(AtomicU64::new(5_000)));
        let clock = Clock::new(Arc::clone(&host) as Arc<dyn Host>);
        assert_eq!(clock.now(), Millis(5_000));
        advance(Duration::from_secs(1)).await;
        host.0.store(2_000, Ordering::Relaxed);
        assert_eq!(clock.now(), Millis(6_000), "it stepped back");
        advance(Duration::from_secs(1)).await;
        host.0.store(3_000, Ordering::Relaxed);
        assert_eq!(clock.now(), Millis(7_000));
        host.0.store(9_000, Ordering::Relaxed);
        assert_eq!(clock.now(), Millis(9_000), "it was put forward");
        advance(Duration::from_secs(1)).await;
        assert_eq!(clock.now(), Millis(10_000));
    }
}
