//! How one worker behaves: drawn when it starts, widely different from worker to worker.

use std::time::Duration;

use crate::rng::Rng;

/// The longest that a handler of a sane worker takes, in milliseconds.
const SANE_MS_MAX: u64 = 2_000;

/// What one worker is like.
#[derive(Clone, Debug)]
pub(super) struct WorkerProfile {
    /// How many jobs it works on at once.
    pub(super) concurrency: u32,
    /// From start to the first question for jobs.
    pub(super) boot: Duration,
    /// At least this long between two questions that brought jobs.
    pub(super) pace: Duration,
    /// After so long it gives up a question.
    pub(super) patience: Duration,
    /// Its SDK is too old to finish its jobs when it is asked to end.
    pub(super) ends_at_once: bool,
    /// It tries again where the network failed, as old SDKs do.
    pub(super) is_stubborn: bool,
    pub(super) fate: WorkerFate,
    /// How likely it asks to be replaced with a result.
    pub(super) refresh: f64,
    /// The longest that a handler takes, in milliseconds.
    work_ms_max: u64,
    /// How likely a handler never ends by itself.
    endless: f64,
    /// How likely a handler yields chunks.
    streams: f64,
    /// How likely a streaming handler's result holds all chunks.
    aggregate: f64,
    chunks_max: u64,
    /// How likely a chunk is over the limit.
    chunk_huge: f64,
    /// How likely a handler tells how far it is.
    progress: f64,
    output_bytes_max: u64,
    /// How likely an output holds what JSON does not know, or is none at all.
    odd_output: f64,
}

/// What becomes of a worker if nothing happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerFate {
    GoesOn,
    /// It ends after its first job, to be replaced.
    RefreshesItself,
    /// Its own checks fail: it says so once, and ends.
    Unfit,
}

/// What a handler will do with its job.
#[derive(Clone, Debug)]
pub(super) struct HandlerPlan {
    /// None if it never ends.
    pub(super) work: Option<Duration>,
    /// Sizes of what it yields; none if it yields nothing but returns.
    pub(super) chunks: Option<Vec<u64>>,
    pub(super) aggregates: bool,
    pub(super) progress: u64,
    pub(super) output_bytes: u64,
    pub(super) oddity: Option<Oddity>,
    pub(super) asks_for_replacement: bool,
}

/// Outputs that are not what everybody expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// Python's `NaN`.
    NaN,
    /// A text, not an object.
    Text,
    /// No output at all.
    Nothing,
    /// Not even JSON.
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
            is_stubborn: rng.chance(0.2),
            fate: match rng.range(0..=49) {
                0 => WorkerFate::Unfit,
                1 => WorkerFate::RefreshesItself,
                _ => WorkerFate::GoesOn,
            },
            refresh: rarely(rng, 0.05),
            work_ms_max: rng.skewed(20..=120_000),
            endless: rarely(rng, 0.05),
            streams: if rng.chance(0.4) { rng.range(1..=100) as f64 / 100.0 } else { 0.0 },
            aggregate: rng.range(0..=100) as f64 / 100.0,
            chunks_max: rng.skewed(1..=60),
            chunk_huge: if rng.chance(0.02) { 0.002 } else { 0.0 },
            progress: rarely(rng, 0.5),
            output_bytes_max: rng.skewed(10..=30_000),
            odd_output: rarely(rng, 0.1),
        }
    }

    /// What a handler will do. A `sane` one ends soon.
    pub(super) fn plan(&self, rng: &mut Rng, sane: bool) -> HandlerPlan {
        let endless = !sane && rng.chance(self.endless);
        let work_ms_max = if sane { self.work_ms_max.min(SANE_MS_MAX) } else { self.work_ms_max };
        let work = Duration::from_millis(rng.skewed(0..=work_ms_max));
        let yields = rng.chance(self.streams);
        let chunks = yields.then(|| rng.skewed(0..=self.chunks_max));
        HandlerPlan {
            work: (!endless).then_some(work),
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
