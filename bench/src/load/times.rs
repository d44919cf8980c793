//! A histogram of durations with three significant digits, from 1 µs to 10 min.

use std::time::Duration;

use hdrhistogram::Histogram;

const LONGEST_US: u64 = 600_000_000;

/// Durations of one kind, as a histogram.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
}

impl Times {
    /// Returns an empty histogram.
    pub fn new() -> Self {
        match Histogram::new_with_bounds(1, LONGEST_US, 3) {
            Ok(histogram) => Self { histogram },
            Err(error) => unreachable!("constant bounds: {error}"),
        }
    }

    /// Adds a duration; longer ones count as 10 minutes.
    pub fn add(&mut self, took: Duration) {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(LONGEST_US);
        self.histogram.saturating_record(took_us);
    }

    /// Number of added durations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The quantile `share` (0 to 1) in microseconds.
    pub fn quantile_us(&self, share: f64) -> f64 {
        self.histogram.value_at_quantile(share) as f64
    }

    /// The mean in microseconds.
    pub fn mean_us(&self) -> f64 {
        self.histogram.mean()
    }

    /// The longest duration in microseconds.
    pub fn longest_us(&self) -> f64 {
        self.histogram.max() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut times = Times::new();
        for us in 1..=1000 {
            times.add(Duration::from_micros(us));
        }
        assert_eq!(times.count(), 1000);
        assert!((times.quantile_us(0.5) - 500.0).abs() <= 1.0, "{}", times.quantile_us(0.5));
        assert!((times.quantile_us(0.99) - 990.0).abs() <= 1.0, "{}", times.quantile_us(0.99));
        assert!((times.mean_us() - 500.5).abs() < 1.0);
        assert!((times.longest_us() - 1000.0).abs() <= 1.0);
    }

    #[test]
    fn what_lasts_for_ever_counts_as_the_longest() {
        let mut times = Times::new();
        times.add(Duration::MAX);
        assert!(times.longest_us() >= LONGEST_US as f64);
    }
}
