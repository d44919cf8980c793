//! How long the last starts of one endpoint's workers took.

use std::collections::VecDeque;

use longshore_fleet::StartTimes;

/// The number of starts that are stored.
const STARTS_MAX: usize = 64;

/// The times from the launch of a worker to its first take, in ms, the last one at the end. Volatile.
#[derive(Debug, Default)]
pub(super) struct RecentStarts(VecDeque<u64>);

impl RecentStarts {
    /// Adds a start, in place of the oldest one if there are many.
    pub(super) fn add(&mut self, took_ms: u64) {
        if self.0.len() == STARTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(took_ms);
    }

    /// The median and the 95th percentile.
    pub(super) fn times(&self) -> StartTimes {
        let mut sorted: Vec<u64> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        let percentile =
            |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1));
        StartTimes {
            count: sorted.len() as u32,
            p50_ms: percentile(50).copied().unwrap_or_default(),
            p95_ms: percentile(95).copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_last_starts() {
        let mut starts = RecentStarts::default();
        assert_eq!(starts.times(), StartTimes::default());
        starts.add(7);
        assert_eq!(starts.times(), StartTimes { count: 1, p50_ms: 7, p95_ms: 7 });
        (1..=100).for_each(|ms| starts.add(ms));
        assert_eq!(starts.times(), StartTimes { count: 64, p50_ms: 68, p95_ms: 97 });
    }
}
