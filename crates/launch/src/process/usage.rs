//! What the workers use of the computer, read from `/proc` when it is asked for.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use longshore_model::WorkerId;
use rustix::time::{ClockId, clock_gettime};

use crate::WorkerUsage;
use crate::proc::{ProcessId, TreeUsage, usage_below};

/// The unit of processor time in `/proc`, on every platform of Linux.
const TICKS_PER_S: f64 = 100.0;
/// Readings of one worker are at least this far apart: requests in between get the last one.
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// The last reading of each worker.
#[derive(Debug, Default)]
pub(super) struct UsageReadings(HashMap<WorkerId, Reading>);

#[derive(Clone, Copy, Debug)]
struct Reading {
    taken_at: Instant,
    used: TreeUsage,
    usage: WorkerUsage,
}

impl UsageReadings {
    /// The usage of these workers, each with its shim. The processors are those since the last reading, or since the
    /// worker's start at its first one.
    pub(super) fn read(&mut self, workers: Vec<(WorkerId, ProcessId)>) -> HashMap<WorkerId, WorkerUsage> {
        self.0.retain(|id, _| workers.iter().any(|(worker, _)| worker == id));
        let is_due = |(id, _): &(WorkerId, ProcessId)| {
            self.0.get(id).is_none_or(|last| last.taken_at.elapsed() >= INTERVAL_MIN)
        };
        let due: Vec<_> = workers.into_iter().filter(is_due).collect();
        if !due.is_empty() {
            let (ids, shims): (Vec<WorkerId>, Vec<ProcessId>) = due.into_iter().unzip();
            for (id, used) in ids.into_iter().zip(usage_below(&shims)) {
                let before = self.0.get(&id).map(|last| (last.used, last.taken_at.elapsed().as_secs_f64()));
                let usage = usage(used, before, since_boot_s());
                self.0.insert(id, Reading { taken_at: Instant::now(), used, usage });
            }
        }
        self.0.iter().map(|(id, last)| (id.clone(), last.usage)).collect()
    }
}

/// `before`: the reading before this one, and the seconds since then.
fn usage(used: TreeUsage, before: Option<(TreeUsage, f64)>, since_boot_s: f64) -> WorkerUsage {
    let (ticks, over_s) = match before {
        Some((before, elapsed_s)) => (used.cpu_ticks.saturating_sub(before.cpu_ticks), elapsed_s),
        None => (used.cpu_ticks, since_boot_s - used.start_ticks as f64 / TICKS_PER_S),
    };
    // The first tick of a process that has just started is a guess.
    let cpu_ratio = ticks as f64 / TICKS_PER_S / over_s.max(1.0);
    WorkerUsage { rss_bytes: used.rss_bytes, cpu_ratio }
}

fn since_boot_s() -> f64 {
    let boot = clock_gettime(ClockId::Boottime);
    boot.tv_sec as f64 + boot.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processors_are_those_since_the_last_reading() {
        let used = |cpu_ticks| TreeUsage { rss_bytes: 4_096, cpu_ticks, start_ticks: 1_000 };
        let percent = |usage: WorkerUsage| (usage.cpu_ratio * 100.0).round() as u64;
        let first = usage(used(500), None, 20.0);
        assert_eq!((first.rss_bytes, percent(first)), (4_096, 50), "5 s of 10 s");
        assert_eq!(percent(usage(used(900), Some((used(500), 2.0)), 22.0)), 200);
        // A process that has ended took its time with it.
        assert_eq!(percent(usage(used(100), Some((used(500), 2.0)), 24.0)), 0);
    }

    #[test]
    fn a_child_of_this_process_is_measured_and_the_process_itself_is_not() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let own = ProcessId::of(rustix::process::getpid()).unwrap();
        let worker: WorkerId = "w".parse().unwrap();
        let usage = UsageReadings::default().read(vec![(worker.clone(), own)])[&worker];
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(usage.rss_bytes > 0 && usage.cpu_ratio >= 0.0, "{usage:?}");
    }
}
