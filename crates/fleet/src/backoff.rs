//! Patience with a command that keeps crashing.

use longshore_model::Millis;

/// The wait after the first crash.
pub const BACKOFF_MS_MIN: u64 = 1_000;
/// The longest wait.
pub const BACKOFF_MS_MAX: u64 = 300_000;
/// A worker that lived for so long shows that the command works: the count of crashes starts anew.
pub const STABLE_UPTIME_MS: u64 = 60_000;

/// Patience with a command that keeps crashing: the wait before the next start doubles with every crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    crashes: u32,
    until: Millis,
}

impl Backoff {
    /// A worker ended that should not have, after `ran_ms`; or it could not be started at all.
    pub fn crashed(&mut self, now: Millis, ran_ms: u64) {
        // Many workers that fall together (their GPU, their disk) are one reason to wait, not many.
        if now < self.until {
            return;
        }
        if ran_ms >= STABLE_UPTIME_MS {
            self.crashes = 0;
        }
        self.crashes += 1;
        let doublings = (self.crashes - 1).min(16);
        self.until = now + (BACKOFF_MS_MIN << doublings).min(BACKOFF_MS_MAX);
    }

    /// A worker is up and has lived for `lived_ms`.
    pub fn lived(&mut self, lived_ms: u64) {
        if lived_ms >= STABLE_UPTIME_MS {
            *self = Self::default();
        }
    }

    /// The command or the settings changed: the past says nothing any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The last worker that was started crashed, or those before it did and it has not lived long yet.
    pub fn is_failing(&self) -> bool {
        self.crashes > 0
    }

    /// When the next worker may start, if that is not now.
    pub fn wait_until(&self, now: Millis) -> Option<Millis> {
        (now < self.until).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_wait_doubles_from_a_second_to_five_minutes() {
        let mut backoff = Backoff::default();
        let mut now = Millis(0);
        let mut waits = Vec::new();
        for _ in 0..11 {
            backoff.crashed(now, 200);
            let until = backoff.wait_until(now).unwrap();
            waits.push(until.since(now) / 1_000);
            now = until;
            assert_eq!(backoff.wait_until(now), None, "the wait is over at its end");
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }

    #[test]
    fn a_worker_that_lived_long_enough_starts_the_count_anew() {
        let mut backoff = Backoff::default();
        backoff.crashed(Millis(0), 10);
        backoff.crashed(Millis(1_000), 10);
        backoff.crashed(Millis(100_000), STABLE_UPTIME_MS);
        assert_eq!(backoff.wait_until(Millis(100_000)), Some(Millis(101_000)));
        backoff.lived(STABLE_UPTIME_MS - 1);
        assert!(backoff.is_failing());
        backoff.lived(STABLE_UPTIME_MS);
        assert!(!backoff.is_failing());
    }

    #[test]
    fn workers_that_crash_together_count_once() {
        let mut backoff = Backoff::default();
        backoff.crashed(Millis(0), 10);
        backoff.crashed(Millis(5), 10);
        assert_eq!(backoff.wait_until(Millis(5)), Some(Millis(1_000)));
    }
}
