//! The engine's runtime: clocks, random bits and tasks. A simulator replaces it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longshore_model::Millis;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::task::JoinHandle;

/// The future of a task of the engine.
pub type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The clocks, random bits and tasks of an engine. The default methods are those of [`TokioRuntime`]; a simulator overrides
/// them.
pub trait Runtime: Send + Sync + 'static {
    /// The time of the wall clock. It may jump in both directions.
    fn wall_clock(&self) -> Millis {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(since_epoch.as_millis() as u64)
    }

    /// The time since the first call in this process. Never decreases and never jumps.
    fn monotonic_clock(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }

    /// Returns 128 random bits from a cryptographic generator, for ids and secrets.
    ///
    /// # Panics
    ///
    /// Panics if the operating system provides no random bytes.
    fn entropy(&self) -> u128 {
        let mut bits = [0; 16];
        // The kernel's generator fails only before it is seeded, early during boot. A predictable id or secret would be
        // worse than the panic, which ends the task.
        SystemRandom::new().fill(&mut bits).expect("the operating system provides random bytes");
        u128::from_ne_bytes(bits)
    }

    /// Whether the engine may act outside of its store now: call webhooks, start and stop workers. It may not while another
    /// process may own its rows.
    fn may_act(&self) -> bool {
        true
    }

    /// Starts a task. Dropping the handle detaches the task.
    fn spawn(&self, task: BoxTask) -> JoinHandle<()> {
        tokio::spawn(task)
    }
}

/// The runtime of a server: the computer's clocks and random generator, and tasks on tokio.
#[derive(Debug, Default)]
pub struct TokioRuntime;

impl Runtime for TokioRuntime {}

/// The engine's time: the wall clock, which continues at the pace of the monotonic clock after a step back. If the engine's
/// time stood still instead, no lease and no timeout would end until the wall clock had caught up.
pub(crate) struct Clock {
    runtime: Arc<dyn Runtime>,
    /// The monotonic clock when this clock was created.
    began: Duration,
    /// The wall clock when this clock was created, plus all its later steps forward. In ms since the epoch.
    began_ms: AtomicU64,
}

impl Clock {
    /// Returns a clock that reads the clocks of `runtime`.
    pub(crate) fn new(runtime: Arc<dyn Runtime>) -> Self {
        Self { began: runtime.monotonic_clock(), runtime, began_ms: AtomicU64::new(0) }
    }

    /// The present time in ms since the epoch. Never less than the result of an earlier call.
    pub(crate) fn now(&self) -> Millis {
        let passed_ms = self.runtime.monotonic_clock().saturating_sub(self.began).as_millis() as u64;
        let began_ms = self.runtime.wall_clock().0.saturating_sub(passed_ms);
        let began_ms = self.began_ms.fetch_max(began_ms, Ordering::Relaxed).max(began_ms);
        Millis(passed_ms + began_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wall clock and the monotonic clock, both in ms.
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
    fn time_passes_while_the_wall_clock_is_behind() {
        let runtime = Arc::new(SetClocks(AtomicU64::new(5_000), AtomicU64::new(70)));
        let clock = Clock::new(Arc::clone(&runtime) as Arc<dyn Runtime>);
        assert_eq!(clock.now(), Millis(5_000));
        let after_a_second = |wall_ms| {
            runtime.0.store(wall_ms, Ordering::Relaxed);
            runtime.1.fetch_add(1_000, Ordering::Relaxed);
            clock.now()
        };
        assert_eq!(after_a_second(2_000), Millis(6_000), "the wall clock stepped back");
        assert_eq!(after_a_second(3_000), Millis(7_000));
        assert_eq!(after_a_second(9_000), Millis(9_000), "the wall clock stepped forward");
        assert_eq!(after_a_second(9_000), Millis(10_000));
    }
}
