//! Quantiles of the times of commits.

use std::time::Duration;

/// The times of commits.
#[derive(Default)]
pub struct Times {
    us: Vec<u32>,
}

impl Times {
    /// Adds the time of a commit.
    pub fn add(&mut self, took: Duration) {
        self.us.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    /// The number of commits whose times were added.
    pub fn len(&self) -> usize {
        self.us.len()
    }

    /// The time that this share of the commits did not exceed, in us; 0 without commits.
    pub fn quantile_us(&mut self, share: f64) -> u32 {
        self.us.sort_unstable();
        let last = self.us.len().saturating_sub(1) as f64;
        self.us.get((last * share) as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_of_commits() {
        let mut times = Times::default();
        assert_eq!(times.quantile_us(0.5), 0);
        for ms in [3, 1, 2] {
            times.add(Duration::from_millis(ms));
        }
        assert_eq!(
            (times.quantile_us(0.0), times.quantile_us(0.5), times.quantile_us(1.0)),
            (1_000, 2_000, 3_000)
        );
    }
}
