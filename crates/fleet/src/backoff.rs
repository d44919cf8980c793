//! The wait before the next start of a command that keeps crashing.

use longshore_model::Millis;

/// The wait after the first crash, in ms.
pub const BACKOFF_MS_MIN: u64 = 1_000;
/// The longest wait after a crash, in ms.
pub const BACKOFF_MS_MAX: u64 = 300_000;
/// Uptime in ms after which a start counts as successful and the count of crashes is reset.
pub const STABLE_UPTIME_MS: u64 = 60_000;

/// The crashes of an endpoint's workers and the wait before the next start, which doubles with every crash.
///
/// Volatile; one per supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    crashes: u32,
    until: Millis,
}

impl Backoff {
    /// Counts a crash: a worker exited unexpectedly after `ran_ms`, or a start failed.
    pub fn crashed(&mut self, now: Millis, ran_ms: u64) {
        // Workers that crash together have one cause, such as a GPU or a disk, and count once.
        if now < self.until {
            return;
        }
        if ran_ms >= STABLE_UPTIME_MS {
            self.crashes = 0;
        }
        self.crashes += 1;
        let doublings = (self.crashes - 1).min(16);
        debug_assert!(self.crashes > 0, "a crash is counted before its wait");
        self.until = now + (BACKOFF_MS_MIN << doublings).min(BACKOFF_MS_MAX);
    }

    /// Resets the count if a worker has run for [`STABLE_UPTIME_MS`].
    pub fn lived(&mut self, lived_ms: u64) {
        if lived_ms >= STABLE_UPTIME_MS {
            *self = Self::default();
        }
    }

    /// Resets the count, because the command or the settings have changed.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether a start has crashed and no worker has run for [`STABLE_UPTIME_MS`] since.
    pub fn is_failing(&self) -> bool {
        self.crashes > 0
    }

    /// When the next worker may start; `None`: now.
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
