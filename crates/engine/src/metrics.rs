//! What the engine counts about itself: plain numbers behind atomics, for whoever exposes them.
//!
//! Recording never blocks and never allocates. A reader sees each number at some moment of its reading, not all
//! of them at the same one; for a scrape that is good enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The shape of a distribution: how many values fell at or below each bound.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One more than the bounds: the last one counts what is above all of them.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A histogram at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// The inclusive upper bounds, ascending.
    pub bounds: &'static [u64],
    /// How many values are at or below each bound; the last element counts all values.
    pub cumulative: Vec<u64>,
    /// The sum of all values.
    pub sum: u64,
}

impl Histogram {
    /// An empty one. The bounds are inclusive, ascending, and in the unit of the values.
    pub fn new(bounds: &'static [u64]) -> Self {
        debug_assert!(bounds.is_sorted(), "bounds must ascend");
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts one value.
    pub fn record(&self, value: u64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let cumulative = self.counts.iter().scan(0, |total, count| {
            *total += count.load(Ordering::Relaxed);
            Some(*total)
        });
        HistogramSnapshot {
            bounds: self.bounds,
            cumulative: cumulative.collect(),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

/// What is measured of one endpoint. Lives as long as the endpoint is loaded; starts at zero with the server.
#[derive(Debug)]
pub struct EndpointMetrics {
    /// How long jobs waited before a worker took them, in milliseconds.
    pub delay_ms: Histogram,
    /// How long jobs ran until they were terminal, in milliseconds.
    pub execution_ms: Histogram,
}

/// Bounds for waits and runs of jobs: 1 ms to an hour.
const JOB_MS_BOUNDS: [u64; 16] =
    [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 600_000, 3_600_000];

impl Default for EndpointMetrics {
    fn default() -> Self {
        Self { delay_ms: Histogram::new(&JOB_MS_BOUNDS), execution_ms: Histogram::new(&JOB_MS_BOUNDS) }
    }
}

/// What is measured of the engine as a whole.
#[derive(Debug)]
pub struct EngineMetrics {
    /// How long a commit took from handing over its batch until it was durable, in microseconds.
    pub commit_us: Histogram,
    /// How many commands shared a commit.
    pub commit_batch: Histogram,
    commits_failed: AtomicU64,
    invariants_broken: AtomicU64,
}

/// Bounds for commits: 50 µs to a second.
const COMMIT_US_BOUNDS: [u64; 13] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];
/// Bounds for the number of commands in a commit.
const COMMIT_BATCH_BOUNDS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

impl Default for EngineMetrics {
    fn default() -> Self {
        Self {
            commit_us: Histogram::new(&COMMIT_US_BOUNDS),
            commit_batch: Histogram::new(&COMMIT_BATCH_BOUNDS),
            commits_failed: AtomicU64::new(0),
            invariants_broken: AtomicU64::new(0),
        }
    }
}

impl EngineMetrics {
    /// Counts a commit that is durable.
    pub fn committed(&self, took: Duration, commands: usize) {
        self.commit_us.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.commit_batch.record(commands as u64);
    }

    /// Counts a commit that the store refused.
    pub fn commit_failed(&self) {
        self.commits_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a broken invariant of a queue.
    pub fn invariant_broken(&self) {
        self.invariants_broken.fetch_add(1, Ordering::Relaxed);
    }

    /// How often an invariant of a queue was broken, so that the queue was dropped and loaded from rows.
    pub fn invariants_broken(&self) -> u64 {
        self.invariants_broken.load(Ordering::Relaxed)
    }

    /// How many commits the store refused.
    pub fn commits_failed(&self) -> u64 {
        self.commits_failed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_counts_cumulative() {
        let histogram = Histogram::new(&[1, 10]);
        for value in [0, 1, 2, 10, 11, 1_000] {
            histogram.record(value);
        }
        let HistogramSnapshot { bounds, cumulative, sum } = histogram.snapshot();
        assert_eq!((bounds, cumulative, sum), (&[1, 10][..], vec![2, 4, 6], 1_024));
    }

    #[test]
    fn a_commit_counts_its_time_and_its_commands() {
        let metrics = EngineMetrics::default();
        metrics.committed(Duration::from_micros(700), 3);
        metrics.commit_failed();
        assert_eq!(metrics.commit_us.snapshot().sum, 700);
        assert_eq!(metrics.commit_batch.snapshot().sum, 3);
        assert_eq!(metrics.commits_failed(), 1);
    }
}
