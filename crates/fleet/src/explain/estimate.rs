//! When a job starts, probably: from the jobs that ended lately, and from how long workers took to start.

use super::{WaitEstimate, WaitFacts};

/// The number of measurements from which on something is estimated.
const SAMPLES_MIN: u32 = 5;
const HOUR_MS: u64 = 3_600_000;
/// The square of 800: the number of ended jobs spreads by 0.8 times its square root, in thousandths of a job.
const SPREAD: u64 = 640_000;

/// How many jobs of an endpoint ended in the last 5 min.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinishRate {
    /// The number of jobs that ended.
    pub count: u32,
    /// The mean rate per hour.
    pub per_hour: u64,
    /// The rate of slow minutes (p10), per hour. At most `per_hour`.
    pub slow_per_hour: u64,
    /// The rate of fast minutes (p90), per hour. At least `per_hour`.
    pub fast_per_hour: u64,
}

/// How long the last starts of workers took, from the launch to the first take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// The number of starts that the times are of, at most 64.
    pub count: u32,
    /// The median, in ms.
    pub p50_ms: u64,
    /// The time that 95 % of the starts kept, in ms.
    pub p95_ms: u64,
}

/// The time until the job starts; `None` without a queued job, and with too few measurements. Without a ready worker, the
/// start of one comes first.
pub(super) fn estimate(facts: &WaitFacts<'_>) -> Option<WaitEstimate> {
    let ahead = facts.queue.as_ref()?.position? - 1;
    let is_up = facts.up() > 0;
    let deferred_until = facts.job().and_then(|job| job.deferred_until);
    let deferred_ms = deferred_until.map_or(0, |until| until.since(facts.now));
    if is_up && facts.is_asked_for() && ahead == 0 {
        return Some(WaitEstimate { min_ms: deferred_ms, max_ms: deferred_ms });
    }
    let start = start_ms(facts, is_up)?;
    // A worker that has just started takes the first job immediately. A busy one must end a job first.
    let to_finish = if is_up { ahead + 1 } else { ahead };
    let (fastest, slowest) = finish_ms(to_finish, &facts.finishes)?;
    let after = |ms: u64| ms.max(deferred_ms);
    Some(WaitEstimate { min_ms: after(start.0 + fastest), max_ms: after(start.1 + slowest) })
}

/// The shortest and longest time until a worker is ready. `None` also while none can start, and if each that starts takes
/// longer than usual.
fn start_ms(facts: &WaitFacts<'_>, is_up: bool) -> Option<(u64, u64)> {
    if is_up {
        return Some((0, 0));
    }
    let times = facts.fleet.starts;
    if times.count < SAMPLES_MIN {
        return None;
    }
    let running_ms = if facts.starting().next().is_some() {
        let starting = facts.starting().filter(|worker| worker.started_at.0 > 0);
        let ages = starting.map(|worker| facts.now.since(worker.started_at));
        ages.filter(|ms| *ms <= times.p95_ms).max()?
    } else {
        let starts_none = facts.queue.as_ref().is_some_and(|queue| queue.queued_normal == 0);
        if starts_none || facts.gpus.is_some() || facts.no_room.is_some() {
            return None;
        }
        0
    };
    Some((times.p50_ms.saturating_sub(running_ms), times.p95_ms - running_ms))
}

/// Returns the shortest and the longest time in which this number of jobs ends, in ms; `None` with too few measurements.
///
/// The times of jobs differ, so that a few of them can take much shorter or longer than the mean: by about a job for one, and
/// by ten for a hundred and fifty. Without that, half of the jobs would start outside of the range.
pub fn finish_ms(jobs: u64, rate: &FinishRate) -> Option<(u64, u64)> {
    if jobs == 0 {
        return Some((0, 0));
    }
    if rate.count < SAMPLES_MIN || rate.slow_per_hour == 0 {
        return None;
    }
    let thousandths = jobs.saturating_mul(1_000);
    let spread = jobs.saturating_mul(SPREAD).isqrt();
    let within = |thousandths: u64, per_hour: u64| {
        u64::try_from(u128::from(thousandths) * u128::from(HOUR_MS) / 1_000 / u128::from(per_hour))
            .unwrap_or(u64::MAX)
    };
    let fastest = within(thousandths.saturating_sub(spread), rate.fast_per_hour);
    Some((fastest, within(thousandths.saturating_add(spread), rate.slow_per_hour)))
}
