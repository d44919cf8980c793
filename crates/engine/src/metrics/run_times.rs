//! How long the jobs of an endpoint ran, by version, so that a slow version is noticed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use longshore_fleet::{RunTimes, VersionRunTimes};
use longshore_model::Millis;

/// The number of jobs of which the times are stored.
const RUNS_MAX: usize = 64;
/// A version with fewer jobs is not compared.
const RUNS_MIN: usize = 20;

/// The run times of the present version's last jobs, and the median of the version before it. Volatile.
#[derive(Debug, Default)]
pub(crate) struct RecentRuns(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    version: u32,
    /// When the version was first seen here.
    since: Millis,
    /// In ms, the last one at the end.
    times: VecDeque<u64>,
    /// The last version before that had enough jobs.
    before: Option<RunTimes>,
}

impl RecentRuns {
    /// Adds a job that has ended after `ran_ms`. A job that began before the version was seen does not count: a worker of
    /// the version before may have run it.
    pub(crate) fn add(&self, version: u32, now: Millis, ran_ms: u64) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if runs.version != version {
            runs.begin(version, now);
        }
        if now.0.saturating_sub(ran_ms) < runs.since.0 {
            return;
        }
        if runs.times.len() == RUNS_MAX {
            runs.times.pop_front();
        }
        runs.times.push_back(ran_ms);
    }

    /// The present version beside the one before; `None` until both have had enough jobs.
    pub(crate) fn compared(&self) -> Option<VersionRunTimes> {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(VersionRunTimes { since: runs.since, present: runs.median()?, before: runs.before? })
    }
}

impl Runs {
    fn begin(&mut self, version: u32, now: Millis) {
        self.before = self.median().or(self.before);
        // Before the first job there was no other version, whose jobs could still run.
        self.since = if self.version == 0 { Millis(0) } else { now };
        self.version = version;
        self.times.clear();
    }

    fn median(&self) -> Option<RunTimes> {
        if self.times.len() < RUNS_MIN {
            return None;
        }
        let mut sorted: Vec<u64> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        Some(RunTimes { version: self.version, jobs: sorted.len() as u32, p50_ms: sorted[sorted.len() / 2] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_700_000_000_000);

    fn add(runs: &RecentRuns, version: u32, jobs: u32, ran_ms: u64) {
        (0..jobs).for_each(|_| runs.add(version, NOW, ran_ms));
    }

    #[test]
    fn a_version_is_compared_with_the_last_one_that_had_enough_jobs() {
        let runs = RecentRuns::default();
        add(&runs, 3, 30, 100);
        assert_eq!(runs.compared(), None);
        add(&runs, 4, 2, 0);
        add(&runs, 5, 19, 0);
        assert_eq!(runs.compared(), None);
        add(&runs, 5, 1, 0);
        let compared = runs.compared().expect("two versions");
        assert_eq!(compared.before, RunTimes { version: 3, jobs: 30, p50_ms: 100 });
        assert_eq!(compared.present, RunTimes { version: 5, jobs: 20, p50_ms: 0 });
        assert_eq!(compared.since, NOW);
    }

    #[test]
    fn jobs_that_began_under_the_version_before_do_not_count() {
        let runs = RecentRuns::default();
        add(&runs, 1, 20, 100);
        add(&runs, 2, 50, 7);
        assert_eq!(runs.compared(), None);
        (0..100).for_each(|_| runs.add(2, NOW + 10, 7));
        assert_eq!(runs.compared().expect("two versions").present.jobs, RUNS_MAX as u32);
    }
}
