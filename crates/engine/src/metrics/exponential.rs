//! Buckets 9 % wide, without bounds of their own: those of Prometheus' native histograms with the schema 3, whose bounds are
//! the powers of 2^(1/8).

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The schema's number: bounds are powers of 2^(2^-schema).
pub const EXPONENTIAL_SCHEMA: i32 = 3;

/// The bounds between 0.5 and 1.
const BOUNDS: [f64; 8] = [
    0.5,
    0.545_253_866_332_628_8,
    0.594_603_557_501_360_5,
    0.648_419_777_325_504_8,
    FRAC_1_SQRT_2,
    0.771_105_412_703_970_4,
    0.840_896_415_253_714_5,
    0.917_004_043_204_671_2,
];
/// The first bucket, which has 0.001.
const FIRST: i32 = -79;
/// The last bucket, which ends at 2^17 and has all larger values, too.
const LAST: i32 = 136;
const BUCKETS: usize = (LAST - FIRST + 1) as usize;

/// The counts. They are allocated with the first value: most endpoints of a large server have no jobs.
#[derive(Debug)]
pub(super) struct ExponentialBuckets {
    /// The number of the values' units in one unit of the bounds.
    units_per_one: f64,
    zeros: AtomicU64,
    counts: OnceLock<Box<[AtomicU64]>>,
}

/// A copy of the counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExponentialSnapshot {
    /// The number of values that were 0.
    pub zeros: u64,
    /// The buckets with values, ascending: the number of the bucket, and that of its values. Bucket `n` ends at 2^(n/8), and
    /// begins above the end of the one before.
    pub counts: Vec<(i32, u64)>,
}

impl ExponentialBuckets {
    pub(super) fn new(units_per_one: f64) -> Self {
        Self { units_per_one, zeros: AtomicU64::new(0), counts: OnceLock::new() }
    }

    pub(super) fn record(&self, value: u64) {
        if value == 0 {
            self.zeros.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let counts = self.counts.get_or_init(|| (0..BUCKETS).map(|_| AtomicU64::new(0)).collect());
        let bucket = bucket(value as f64 / self.units_per_one).clamp(FIRST, LAST);
        counts[(bucket - FIRST) as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> ExponentialSnapshot {
        let counts = self.counts.get().into_iter().flat_map(|counts| (FIRST..).zip(counts.iter()));
        let counts = counts.map(|(bucket, count)| (bucket, count.load(Ordering::Relaxed)));
        ExponentialSnapshot {
            zeros: self.zeros.load(Ordering::Relaxed),
            counts: counts.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

impl ExponentialSnapshot {
    /// The number of all values.
    pub fn count(&self) -> u64 {
        self.zeros + self.counts.iter().map(|(_, count)| count).sum::<u64>()
    }
}

/// The bucket of a number above 0: the smallest n with `value` at or below 2^(n/8).
fn bucket(value: f64) -> i32 {
    // The number as a fraction from 0.5 to below 1, and a power of two.
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1_022;
    let fraction = f64::from_bits(bits & !(0x7ff << 52) | 1_022 << 52);
    BOUNDS.partition_point(|bound| *bound < fraction) as i32 + (exponent - 1) * BOUNDS.len() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_at_its_power() {
        for (value, expected) in
            [(1.0, 0), (1.000_001, 1), (2.0, 8), (0.5, -8), (0.001, -79), (131_072.0, 136)]
        {
            assert_eq!(bucket(value), expected, "{value}");
        }
        for n in -79..136 {
            let bound = 2_f64.powf(f64::from(n) / 8.0);
            assert_eq!((bucket(bound * 0.999_999), bucket(bound * 1.000_001)), (n, n + 1), "{bound}");
        }
    }

    #[test]
    fn values_are_counted_in_the_unit_of_the_bounds() {
        let buckets = ExponentialBuckets::new(1_000.0);
        assert_eq!(buckets.snapshot(), ExponentialSnapshot { zeros: 0, counts: vec![] });
        for ms in [0, 0, 1, 1_000, 1_000, 2_000, u64::MAX] {
            buckets.record(ms);
        }
        let snapshot = buckets.snapshot();
        assert_eq!(snapshot.counts, [(-79, 1), (0, 2), (8, 1), (136, 1)]);
        assert_eq!((snapshot.zeros, snapshot.count()), (2, 7));
    }
}
