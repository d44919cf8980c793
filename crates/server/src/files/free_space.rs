//! How fast the disk of the data directory fills.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_mins(1);
/// How far back the samples reach.
const WINDOW: Duration = Duration::from_hours(2);
/// A shorter time says nothing about the rate.
const WINDOW_MIN: Duration = Duration::from_mins(10);
/// A later end is not foreseen.
const FORESEEN: Duration = Duration::from_hours(30 * 24);

/// The free space of the last two hours.
#[derive(Debug, Default)]
pub(super) struct FreeSpace {
    /// When how many bytes were free, the oldest first.
    samples: Mutex<VecDeque<(Instant, u64)>>,
}

impl FreeSpace {
    /// Adds how many bytes are free at this moment.
    pub(super) fn note(&self, at: Instant, free: u64) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.push_back((at, free));
        while samples.front().is_some_and(|(first, _)| at.duration_since(*first) > WINDOW) {
            samples.pop_front();
        }
    }

    /// After how long the disk is full if it goes on filling as it did. `None` if it does not fill, or later than in
    /// 30 days, or if the samples are of less than 10 minutes.
    pub(super) fn full_in(&self) -> Option<Duration> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let ((first_at, first), (last_at, last)) = (samples.front()?, samples.back()?);
        let elapsed = last_at.duration_since(*first_at);
        let used = first.checked_sub(*last).filter(|used| *used > 0 && elapsed >= WINDOW_MIN)?;
        let left = elapsed.as_secs_f64() * (*last as f64 / used as f64);
        Duration::try_from_secs_f64(left).ok().filter(|left| *left <= FORESEEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn after(samples: &[(u64, u64)]) -> Option<Duration> {
        let (space, begin) = (FreeSpace::default(), Instant::now());
        for (minute, free) in samples {
            space.note(begin + Duration::from_mins(*minute), *free);
        }
        space.full_in()
    }

    #[test]
    fn the_end_follows_from_the_rate() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[(0, 10 * GB), (9, 9 * GB)]), None, "too short");
        assert_eq!(after(&[(0, 10 * GB), (60, 9 * GB)]), Some(Duration::from_hours(9)));
        assert_eq!(after(&[(0, 9 * GB), (60, 10 * GB)]), None, "it empties");
        assert_eq!(after(&[(0, 10 * GB), (60, 10 * GB)]), None);
        assert_eq!(after(&[(0, 1_000 * GB), (60, 999 * GB)]), None, "in 999 hours");
    }

    #[test]
    fn older_samples_do_not_count() {
        assert_eq!(after(&[(0, 90 * GB), (100, 10 * GB), (160, 9 * GB)]), Some(Duration::from_hours(9)));
    }
}
