//! A distribution of times, from a few of its percentiles.

/// A distribution of times in ms, by its percentiles. Between them it is interpolated; below the median it is the mirror image,
/// in the logarithm, of what is above it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// Shares and values in ms, both ascending; the first share is 0.5. Not empty.
    points: Vec<(f64, f64)>,
}

impl Quantiles {
    /// The distribution of one time, in ms.
    pub fn of_one(ms: u64) -> Self {
        Self { points: vec![(0.5, ms as f64)] }
    }

    /// The distribution with this median and these further percentiles, as shares above 0.5 and values in ms. A value below
    /// that of a smaller share counts as that one.
    pub fn new(median_ms: u64, further: &[(f64, u64)]) -> Self {
        let mut quantiles = Self::of_one(median_ms);
        for (share, ms) in further {
            let (before, floor) = quantiles.points[quantiles.points.len() - 1];
            if *share > before && *share < 1.0 {
                quantiles.points.push((*share, (*ms as f64).max(floor)));
            }
        }
        quantiles
    }

    /// A time in ms, drawn from the distribution.
    pub fn sample(&self, rng: &mut fastrand::Rng) -> u64 {
        self.at(rng.f64()).round() as u64
    }

    /// The value that `share` of the times do not exceed, in ms.
    fn at(&self, share: f64) -> f64 {
        let median = self.points[0].1;
        if share < 0.5 {
            return median * median / self.at(1.0 - share).max(f64::MIN_POSITIVE);
        }
        let after = self.points.iter().position(|(point, _)| *point > share);
        match after {
            Some(after) if after > 0 => {
                let ((from, low), (to, high)) = (self.points[after - 1], self.points[after]);
                low + (high - low) * (share - from) / (to - from)
            }
            // Above the last percentile nothing is known.
            _ => self.points[self.points.len() - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentiles_come_back() {
        let quantiles = Quantiles::new(100, &[(0.9, 300), (0.99, 1_000)]);
        let mut rng = fastrand::Rng::with_seed(1);
        let mut drawn: Vec<u64> = (0..100_000).map(|_| quantiles.sample(&mut rng)).collect();
        drawn.sort_unstable();
        for (share, ms) in [(0.5, 100), (0.9, 300), (0.99, 1_000)] {
            let seen = drawn[(share * 100_000.0) as usize];
            assert!(seen.abs_diff(ms) <= ms / 20, "{share}: {seen} instead of {ms}");
        }
        assert!(drawn[0] >= 10 && drawn[99_999] <= 1_000, "{} {}", drawn[0], drawn[99_999]);
    }

    #[test]
    fn odd_percentiles_are_put_right() {
        let mut rng = fastrand::Rng::with_seed(1);
        let falling = Quantiles::new(100, &[(0.9, 50), (0.4, 7), (1.0, 9)]);
        assert_eq!(falling, Quantiles::new(100, &[(0.9, 100)]));
        assert_eq!(Quantiles::of_one(0).sample(&mut rng), 0);
        assert_eq!(Quantiles::of_one(7).sample(&mut rng), 7);
    }
}
