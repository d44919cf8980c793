//! What the engine takes from the machine it runs on: the time, chance, and tasks.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longshore_model::Millis;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::task::JoinHandle;

/// A task of the engine.
pub type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The machine that the engine runs on. What is written here is the real one, [`TokioRuntime`]; a simulator
/// brings its own.
pub trait Runtime: Send + Sync + 'static {
    /// What the wall clock shows. It may jump, also back.
    fn wall_clock(&self) -> Millis {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(since_epoch.as_millis() as u64)
    }

    /// The time since some moment, the same in every answer. It never jumps.
    fn monotonic_clock(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }

    /// 128 random bits, good enough for secrets.
    fn entropy(&self) -> u128 {
        let mut bits = [0; 16];
        // The kernel's generator fails only before it is seeded, which is long over when a server runs. Should it
        // fail all the same, an id is not worth serving: stop this task.
        SystemRandom::new().fill(&mut bits).expect("the operating system provides random bytes");
        u128::from_ne_bytes(bits)
    }

    /// Starts a task.
    fn spawn(&self, task: BoxTask) -> JoinHandle<()> {
        tokio::spawn(task)
    }
}

/// The machine that this program runs on.
#[derive(Debug, Default)]
pub struct TokioRuntime;

impl Runtime for TokioRuntime {}

/// The engine's time: the wall clock, but it goes on at its own pace where that one steps back. Held still instead,
/// no worker would be missed and no job time out until the wall clock has caught up.
pub(crate) struct Clock {
    host: Arc<dyn Runtime>,
    began: Duration,
    /// What the wall clock showed when this one began, and all that it was put forward since.
    began_ms: AtomicU64,
}

impl Clock {
    pub(crate) fn new(host: Arc<dyn Runtime>) -> Self {
        Self { began: host.monotonic_clock(), host, began_ms: AtomicU64::new(0) }
    }

    /// The present time. Never less than what an earlier call answered.
    pub(crate) fn now(&self) -> Millis {
        let passed_ms = self.host.monotonic_clock().saturating_sub(self.began).as_millis() as u64;
        let began_ms = self.host.wall_clock().0.saturating_sub(passed_ms);
        let began_ms = self.began_ms.fetch_max(began_ms, Ordering::Relaxed).max(began_ms);
        Millis(passed_ms + began_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wall clock and the time that has passed, both in milliseconds.
    struct SetClocks(AtomicU64, AtomicU64);

    impl Runtime for SetClocks {
        fn wall_clock(&self) -> Millis {
            Millis(self.0.load(Ordering::Relaxed))
        }

        fn monotonic_clock(&self) -> Duration {
            Duration::from_millis(self.1.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn time_goes_on_while_the_wall_clock_is_behind() {
        let host = Arc::new(SetClocks(AtomicU64::new(5_000), AtomicU64::new(70)));
        let clock = Clock::new(Arc::clone(&host) as Arc<dyn Runtime>);
        assert_eq!(clock.now(), Millis(5_000));
        let after_a_second = |wall_ms| {
            host.0.store(wall_ms, Ordering::Relaxed);
            host.1.fetch_add(1_000, Ordering::Relaxed);
            clock.now()
        };
        assert_eq!(after_a_second(2_000), Millis(6_000), "it stepped back");
        assert_eq!(after_a_second(3_000), Millis(7_000));
        assert_eq!(after_a_second(9_000), Millis(9_000), "it was put forward");
        assert_eq!(after_a_second(9_000), Millis(10_000));
    }
}
