//! The engine's metrics: counters and histograms in atomics, which `http` exposes.
//!
//! Recording never blocks and never allocates. A snapshot reads the numbers one after the other while others may record, so
//! that counts and sum may differ by the values of that time.

mod events;
mod exponential;
mod finishes;
mod run_times;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longshore_history::Activity;
use longshore_model::Millis;

use self::exponential::ExponentialBuckets;

pub use events::{EventCounts, ExitKind, RetryReason, SubmitRefusal, WebhookOutcome};
pub use exponential::{EXPONENTIAL_SCHEMA, ExponentialSnapshot};
pub(crate) use finishes::Finishes;
pub(crate) use run_times::RecentRuns;

/// A histogram of integers with fixed bounds. Starts empty with the server.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// The values of each bucket; the last bucket has the values above all bounds.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
    /// The same values in narrow buckets, for readers of native histograms.
    exponential: Option<ExponentialBuckets>,
    /// The newest example of each bucket; empty until the first one is noted.
    exemplars: Mutex<Vec<Option<Exemplar>>>,
}

/// A value of a histogram whose trace can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The id of the trace.
    pub trace: [u8; 16],
    /// The value, in the unit of the histogram.
    pub value: u64,
    /// When the value was counted.
    pub at: Millis,
}

/// A copy of a histogram's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// The inclusive upper bounds, ascending, in the unit of the values.
    pub bounds: &'static [u64],
    /// The number of values at or below each bound; one more element than `bounds`: the number of all values.
    pub cumulative: Vec<u64>,
    /// The sum of all values, in their unit.
    pub sum: u64,
    /// The newest example of each bucket, in the order of `cumulative`; empty without any.
    pub exemplars: Vec<Option<Exemplar>>,
    /// The values in narrow buckets; `None` if they are not counted so.
    pub exponential: Option<ExponentialSnapshot>,
}

impl HistogramSnapshot {
    /// Returns the bound of the bucket with this share of the values, `share` from 0 to 1: an upper bound of the
    /// percentile. `None` without a value, or if it is above all bounds.
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let all = *self.cumulative.last()?;
        let wanted = (all as f64 * share).ceil() as u64;
        let bucket = self.cumulative.iter().position(|count| *count > 0 && *count >= wanted)?;
        self.bounds.get(bucket).copied()
    }
}

impl Histogram {
    /// Returns an empty histogram. The bounds are inclusive, ascending, and in the unit of the values.
    pub fn new(bounds: &'static [u64]) -> Self {
        debug_assert!(bounds.is_sorted(), "bounds must ascend");
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
            exponential: None,
            exemplars: Mutex::default(),
        }
    }

    /// Returns an empty histogram of times in ms, with narrow buckets in seconds beside the bounds.
    fn of_ms(bounds: &'static [u64]) -> Self {
        Self { exponential: Some(ExponentialBuckets::new(MS_PER_SECOND)), ..Self::new(bounds) }
    }

    /// Counts a value, in the unit of the bounds.
    pub fn record(&self, value: u64) {
        self.counts[self.bucket(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        if let Some(exponential) = &self.exponential {
            exponential.record(value);
        }
    }

    /// Notes a counted value as the example of its bucket. The first one allocates the places of all buckets.
    pub fn exemplify(&self, exemplar: Exemplar) {
        let mut exemplars = self.exemplars.lock().unwrap_or_else(PoisonError::into_inner);
        exemplars.resize(self.counts.len(), None);
        exemplars[self.bucket(exemplar.value)] = Some(exemplar);
    }

    /// The place of a value's bucket.
    fn bucket(&self, value: u64) -> usize {
        self.bounds.partition_point(|bound| *bound < value)
    }

    /// Returns a copy of the counts so far.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let cumulative = self.counts.iter().scan(0, |total, count| {
            *total += count.load(Ordering::Relaxed);
            Some(*total)
        });
        HistogramSnapshot {
            bounds: self.bounds,
            cumulative: cumulative.collect(),
            sum: self.sum.load(Ordering::Relaxed),
            exemplars: self.exemplars.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            exponential: self.exponential.as_ref().map(ExponentialBuckets::snapshot),
        }
    }
}

/// The metrics of one endpoint. Volatile: empty when the server starts.
#[derive(Debug)]
pub struct EndpointMetrics {
    /// The time from a job's last queueing until its delivery, in ms, counted per delivery.
    pub delay_ms: Histogram,
    /// The time that the last attempt of an ended job ran, in ms. Cancelled jobs do not count.
    pub execution_ms: Histogram,
    /// The time from a job's submit to its first chunk, in ms. Chunks after a retry do not count.
    pub first_chunk_ms: Histogram,
    /// What the actor counts and publishes; the history is made of it.
    pub activity: Activity,
    /// What happened to the workers and the webhook calls.
    pub events: EventCounts,
    /// The jobs that ended lately after they ran.
    pub(crate) finishes: Finishes,
    /// How long the last jobs of the present version ran.
    pub(crate) runs: RecentRuns,
}

const MS_PER_SECOND: f64 = 1_000.0;

/// Bounds of the queueing and execution times of jobs, in ms: 1 ms to 1 h.
const JOB_MS_BOUNDS: [u64; 20] = [
    1, 3, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
    900_000, 1_800_000, 3_600_000,
];

/// Bounds of the time until the first chunk, in ms: 25 ms to 1 min.
const FIRST_CHUNK_MS_BOUNDS: [u64; 11] = [25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];

impl Default for EndpointMetrics {
    fn default() -> Self {
        Self {
            delay_ms: Histogram::of_ms(&JOB_MS_BOUNDS),
            execution_ms: Histogram::of_ms(&JOB_MS_BOUNDS),
            first_chunk_ms: Histogram::of_ms(&FIRST_CHUNK_MS_BOUNDS),
            activity: Activity::default(),
            events: EventCounts::default(),
            finishes: Finishes::default(),
            runs: RecentRuns::default(),
        }
    }
}

/// The metrics of an engine. Volatile: empty when the server starts.
#[derive(Debug)]
pub struct EngineMetrics {
    /// The time from sending a batch to the store until its result, in µs. Failed commits count too.
    pub commit_us: Histogram,
    /// The number of replies that one commit released.
    pub commit_batch: Histogram,
    commits_failed: AtomicU64,
    invariants_broken: AtomicU64,
}

/// Bounds of commit times, in µs: 50 µs to 1 s.
const COMMIT_US_BOUNDS: [u64; 13] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];
/// Bounds of the number of replies of one commit.
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
    /// Counts a commit that has settled after `took` with this number of replies.
    pub fn committed(&self, took: Duration, replies: usize) {
        self.commit_us.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.commit_batch.record(replies as u64);
    }

    /// Counts a commit that has failed.
    pub fn commit_failed(&self) {
        self.commits_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a broken invariant of a queue.
    pub fn invariant_broken(&self) {
        self.invariants_broken.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of broken invariants, after each of which a queue was dropped and loaded from rows.
    pub fn invariants_broken(&self) -> u64 {
        self.invariants_broken.load(Ordering::Relaxed)
    }

    /// The number of commits that have failed.
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
        let HistogramSnapshot { bounds, cumulative, sum, exemplars, exponential } = histogram.snapshot();
        assert_eq!((bounds, cumulative, sum), (&[1, 10][..], vec![2, 4, 6], 1_024));
        assert_eq!((exemplars, exponential), (vec![], None));
    }

    #[test]
    fn the_newest_example_of_each_bucket_is_kept() {
        let histogram = Histogram::new(&[1, 10]);
        let example = |value| Exemplar { trace: [7; 16], value, at: Millis(value) };
        for value in [2, 10, 11, 12] {
            histogram.exemplify(example(value));
        }
        assert_eq!(histogram.snapshot().exemplars, [None, Some(example(10)), Some(example(12))]);
        assert_eq!(histogram.snapshot().cumulative, [0, 0, 0], "an example is no count");
    }

    #[test]
    fn a_percentile_is_the_bound_of_its_bucket() {
        let histogram = Histogram::new(&[1, 10, 100]);
        assert_eq!(histogram.snapshot().percentile(0.5), None);
        for value in [5, 6, 7, 50] {
            histogram.record(value);
        }
        let snapshot = histogram.snapshot();
        assert_eq!(
            [0.0, 0.5, 0.75, 0.99].map(|share| snapshot.percentile(share)),
            [10, 10, 10, 100].map(Some)
        );
        histogram.record(1_000);
        assert_eq!(histogram.snapshot().percentile(0.99), None);
    }

    #[test]
    fn a_commit_counts_its_time_and_its_replies() {
        let metrics = EngineMetrics::default();
        metrics.committed(Duration::from_micros(700), 3);
        metrics.commit_failed();
        assert_eq!(metrics.commit_us.snapshot().sum, 700);
        assert_eq!(metrics.commit_batch.snapshot().sum, 3);
        assert_eq!(metrics.commits_failed(), 1);
    }
}
