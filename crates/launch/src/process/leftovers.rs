//! Ends the processes that a stopped job left in a worker that goes on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longshore_model::WorkerId;
use rustix::time::{ClockId, clock_gettime};

use super::{LauncherShared, in_background, locked};
use crate::proc::{ProcessId, end_trees};
use crate::{Born, LaunchError};

/// The unit of a process's start time in `/proc`, on every platform of Linux.
const TICKS_PER_S: u64 = 100;
/// The largest drift of the wall clock that does not count as a change of the clock.
const DRIFT_MAX: Duration = Duration::from_secs(1);

impl LauncherShared {
    /// Implements [`crate::Launcher::end_leftovers`].
    pub(super) async fn end_leftovers(
        &self,
        worker: &WorkerId,
        born: Born,
        grace: Duration,
    ) -> Result<usize, LaunchError> {
        let Some(running) = locked(&self.running).get(worker).cloned() else { return Ok(0) };
        let (since_boot, since_epoch) = now();
        let elapsed = born.as_of.elapsed();
        if !locked(&self.clocks).agree_since(since_boot, since_epoch, born.since_ago) {
            return Ok(0);
        }
        let Some(process) = running.state.process.or_else(|| self.live(worker).state()?.process) else {
            return Ok(0);
        };
        let shim = running.state.shim;
        let ticks = |ago: Duration| {
            let at = since_boot.saturating_sub(ago + elapsed);
            at.as_secs() * TICKS_PER_S + u64::from(at.subsec_millis()) * TICKS_PER_S / 1_000
        };
        // A process of the first or the last tick may belong to another job.
        let span = ticks(born.since_ago) + 1..ticks(born.until_ago);
        let began = in_background(move || shim.began_within(&process, &span)).await?;
        if began.is_empty() {
            return Ok(0);
        }
        tokio::time::sleep(grace).await;
        in_background(move || {
            let left: Vec<ProcessId> = began.into_iter().filter(ProcessId::is_alive).collect();
            end_trees(&left)
        })
        .await
    }
}

/// The number of pairs of readings of the clocks.
const READINGS: u32 = 5;

/// The time since boot, by which processes are dated, and the wall clock, by which jobs are dated.
///
/// On a busy computer, much time can pass between two readings, which would look as if the wall clock had been set: of
/// several pairs, the one that was read in the shortest time counts.
fn now() -> (Duration, Duration) {
    let since_boot = || {
        let boot = clock_gettime(ClockId::Boottime);
        Duration::new(boot.tv_sec.unsigned_abs(), boot.tv_nsec.unsigned_abs() as u32)
    };
    let pair = |_| {
        let before = since_boot();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since_boot().saturating_sub(before), before, since_epoch)
    };
    let (_, since_boot, since_epoch) = (0..READINGS).map(pair).min().unwrap_or_default();
    (since_boot, since_epoch)
}

/// Notices that the wall clock was set. An earlier span of the wall clock cannot be converted into time since boot:
/// processes of another job could seem to be in the span.
#[derive(Debug)]
pub(super) struct ClockReadings {
    /// The time of boot by the wall clock, at the last reading.
    booted_at: Duration,
    /// The last reading with another time of boot, in time since boot.
    set_at: Duration,
}

impl Default for ClockReadings {
    fn default() -> Self {
        let (since_boot, since_epoch) = now();
        Self { booted_at: since_epoch.saturating_sub(since_boot), set_at: Duration::ZERO }
    }
}

impl ClockReadings {
    /// Whether the wall clock was not set during the given time.
    fn agree_since(&mut self, since_boot: Duration, since_epoch: Duration, ago: Duration) -> bool {
        let booted_at = since_epoch.saturating_sub(since_boot);
        if booted_at.abs_diff(self.booted_at) > DRIFT_MAX {
            self.set_at = since_boot;
        }
        self.booted_at = booted_at;
        self.set_at + ago <= since_boot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_in_which_the_clock_was_set_is_not_believed() {
        let s = Duration::from_secs;
        let mut clocks = ClockReadings { booted_at: s(1_000), set_at: Duration::ZERO };
        assert!(clocks.agree_since(s(500), s(1_500), s(100)));
        assert!(!clocks.agree_since(s(600), s(5_600), s(10)), "it was set just now");
        assert!(!clocks.agree_since(s(650), s(5_650), s(60)), "or after the job began");
        assert!(clocks.agree_since(s(700), s(5_700), s(60)));
        assert!(!clocks.agree_since(s(800), s(1_700), s(1)), "back, too");
    }
}
