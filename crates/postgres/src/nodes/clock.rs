//! The clock of the database, as a node knows it.

use std::sync::{Arc, Mutex, PoisonError};

use longshore_model::Millis;
use tokio::time::Instant;

/// How late an answer can be, in ms: one that takes longer counts as failed.
const LATE_MS_MAX: u64 = 1_500;

/// The clock of the database, by which the owner decides: the clocks of nodes may differ, and a job outlives its owner. Cheap to
/// clone; clones share what was read.
#[derive(Clone, Debug, Default)]
pub struct DatabaseClock {
    /// The time that was read last, and when it was known here.
    read: Arc<Mutex<Option<(Instant, Millis)>>>,
}

impl DatabaseClock {
    /// Notes what an answer of the database says. An answer that took longer than an earlier one does not set the clock back.
    pub(super) fn set(&self, now: Millis) {
        let known = self.now();
        let is_late = known.is_some_and(|known| known.0.saturating_sub(now.0) < LATE_MS_MAX && known > now);
        if !is_late {
            *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), now));
        }
    }

    /// The time of the database; `None` before the first renewal of the lease.
    pub fn now(&self) -> Option<Millis> {
        let read = *self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.map(|(at, now)| Millis(now.0 + at.elapsed().as_millis() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_an_hour_apart_are_followed_and_a_late_answer_is_not() {
        const HOUR_MS: u64 = 3_600_000;
        let clock = DatabaseClock::default();
        assert_eq!(clock.now(), None);
        clock.set(Millis(10 * HOUR_MS));
        clock.set(Millis(10 * HOUR_MS - 500));
        assert!(clock.now() >= Some(Millis(10 * HOUR_MS)));
        // The next primary has another time.
        clock.set(Millis(9 * HOUR_MS));
        assert!(clock.now() < Some(Millis(10 * HOUR_MS)));
        clock.set(Millis(11 * HOUR_MS));
        assert!(clock.now() >= Some(Millis(11 * HOUR_MS)));
    }
}
