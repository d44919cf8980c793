//! The behaviour of one worker. It is drawn at the start and differs widely between workers.

use std::time::Duration;

use crate::rng::Rng;

/// Longest run of a handler of a healthy worker, in ms.
const HEALTHY_MS_MAX: u64 = 2_000;

/// The behaviour of one worker.
#[derive(Clone, Debug)]
pub(super) struct WorkerProfile {
    /// Number of concurrent jobs.
    pub(super) concurrency: u32,
    /// Time from the start to the first take.
    pub(super) boot: Duration,
    /// Shortest time between two takes that returned jobs.
    pub(super) pace: Duration,
    /// Time after which the worker gives up a take.
    pub(super) patience: Duration,
    /// Whether the worker, like an old SDK, ends without finishing its jobs after SIGTERM.
    pub(super) ends_at_once: bool,
    /// Whether the worker, like an old SDK, retries after network failures.
    pub(super) retries_network_errors: bool,
    pub(super) fate: WorkerFate,
    /// Probability that a result asks for the worker's replacement.
    pub(super) refresh: f64,
    /// Longest run of a handler, in ms.
    work_ms_max: u64,
    /// Probability that a handler never ends by itself.
    never_ends: f64,
    /// Probability that a handler yields chunks.
    streams: f64,
    /// Probability that the result of a streaming handler contains all chunks.
    aggregate: f64,
    chunks_max: u64,
    /// Probability that a chunk exceeds the size limit.
    chunk_huge: f64,
    /// Probability that a handler reports progress.
    progress: f64,
    output_bytes_max: u64,
    /// Probability that an output is not valid JSON or is missing.
    odd_output: f64,
}

/// How a worker is planned to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerFate {
    Runs,
    /// Ends after its first job, to be replaced.
    RefreshesItself,
    /// Fails its own checks: reports this once and ends.
    Unfit,
}

/// The plan of a handler for one job.
#[derive(Clone, Debug)]
pub(super) struct HandlerPlan {
    /// Duration of the run; `None` if the handler never ends.
    pub(super) work: Option<Duration>,
    /// Sizes of the chunks; `None` if the handler returns without chunks.
    pub(super) chunks: Option<Vec<u64>>,
    pub(super) aggregates: bool,
    pub(super) progress: u64,
    pub(super) output_bytes: u64,
    pub(super) oddity: Option<Oddity>,
    pub(super) asks_for_replacement: bool,
}

/// Unusual outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Python's `NaN`, which is not JSON.
    NaN,
    /// A string instead of an object.
    Text,
    /// A result without an output.
    Nothing,
    /// Bytes that are not JSON.
    Garbage,
}

impl WorkerProfile {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let rarely = |rng: &mut Rng, most: f64| {
            if rng.chance(0.3) { most * rng.range(1..=100) as f64 / 100.0 } else { 0.0 }
        };
        let many = rng.chance(0.4);
        Self {
            concurrency: if many { rng.range(2..=12) as u32 } else { 1 },
            boot: Duration::from_millis(rng.skewed(1..=20_000)),
            pace: Duration::from_millis(if rng.chance(0.3) { 1_000 } else { 0 }),
            patience: Duration::from_secs(if rng.chance(0.2) { 30 } else { 90 }),
            ends_at_once: rng.chance(0.1),
            retries_network_errors: rng.chance(0.2),
            fate: match rng.range(0..=49) {
                0 => WorkerFate::Unfit,
                1 => WorkerFate::RefreshesItself,
                _ => WorkerFate::Runs,
            },
            refresh: rarely(rng, 0.05),
            work_ms_max: rng.skewed(20..=120_000),
            never_ends: rarely(rng, 0.05),
            streams: if rng.chance(0.4) { rng.range(1..=100) as f64 / 100.0 } else { 0.0 },
            aggregate: rng.range(0..=100) as f64 / 100.0,
            chunks_max: rng.skewed(1..=60),
            chunk_huge: if rng.chance(0.02) { 0.002 } else { 0.0 },
            progress: rarely(rng, 0.5),
            output_bytes_max: rng.skewed(10..=30_000),
            odd_output: rarely(rng, 0.1),
        }
    }

    /// Draws the plan of a handler. A `healthy` handler ends within [`HEALTHY_MS_MAX`].
    pub(super) fn plan(&self, rng: &mut Rng, healthy: bool) -> HandlerPlan {
        let never_ends = !healthy && rng.chance(self.never_ends);
        let work_ms_max = if healthy { self.work_ms_max.min(HEALTHY_MS_MAX) } else { self.work_ms_max };
        let work = Duration::from_millis(rng.skewed(0..=work_ms_max));
        let yields = rng.chance(self.streams);
        let chunks = yields.then(|| rng.skewed(0..=self.chunks_max));
        HandlerPlan {
            work: (!never_ends).then_some(work),
            chunks: chunks.map(|count| (0..count).map(|_| self.chunk_bytes(rng)).collect()),
            aggregates: rng.chance(self.aggregate),
            progress: if rng.chance(self.progress) { rng.range(1..=3) } else { 0 },
            output_bytes: rng.skewed(0..=self.output_bytes_max),
            oddity: rng
                .chance(self.odd_output)
                .then(|| *rng.pick(&[Oddity::NaN, Oddity::Text, Oddity::Nothing, Oddity::Garbage])),
            asks_for_replacement: self.fate == WorkerFate::RefreshesItself || rng.chance(self.refresh),
        }
    }

    fn chunk_bytes(&self, rng: &mut Rng) -> u64 {
        if rng.chance(self.chunk_huge) { 1_000_100 } else { rng.skewed(0..=self.output_bytes_max) }
    }
}
