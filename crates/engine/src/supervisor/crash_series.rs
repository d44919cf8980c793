//! The consecutive crashes of one endpoint's workers, for people who ask why a job waits.

use longshore_fleet::{CrashFacts, CrashKind};
use longshore_launch::WorkerExit;
use longshore_model::{Millis, StartStage, WorkerId};

/// The end of one worker before it was ready.
#[derive(Debug)]
pub(super) struct Crash {
    worker: Option<WorkerId>,
    kind: CrashKind,
    lived_ms: u64,
    log_tail: String,
}

impl Crash {
    /// A worker that could not be started, or that is ended because it does not become ready.
    pub(super) fn before_start(worker: Option<&WorkerId>, kind: CrashKind) -> Self {
        Self { worker: worker.cloned(), kind, lived_ms: 0, log_tail: String::new() }
    }

    /// A worker that exited. `was_ready`: it had sent a take.
    pub(super) fn of_exit(exited: &WorkerExit, was_ready: bool) -> Self {
        let kind = match exited.stage {
            Some(StartStage::Environment | StartStage::Packages) => CrashKind::NoEnvironment,
            _ => CrashKind::Exited {
                code: exited.code,
                signal: exited.signal,
                because: exited.because.clone(),
                was_ready,
            },
        };
        let (worker, log_tail) = (Some(exited.worker.clone()), exited.log_tail.clone());
        Self { worker, kind, lived_ms: exited.ran_ms, log_tail }
    }
}

/// Consecutive crashes: their number and the last one. Volatile; one per supervisor.
#[derive(Debug, Default)]
pub(super) struct CrashSeries(Option<CrashFacts>);

impl CrashSeries {
    /// Adds a crash to the series. `next_try_at`: when the next worker may start.
    pub(super) fn add(&mut self, now: Millis, next_try_at: Millis, crash: Crash) {
        let (count, first_at) = self.0.as_ref().map_or((0, now), |before| (before.count, before.first_at));
        let Crash { worker, kind, lived_ms, log_tail } = crash;
        let count = count.saturating_add(1);
        let facts =
            CrashFacts { kind, worker, lived_ms, count, first_at, last_at: now, next_try_at, log_tail };
        self.0 = Some(facts);
    }

    /// Adds the log of a worker whose crash was counted before its exit.
    pub(super) fn add_log(&mut self, exited: &WorkerExit) {
        if let Some(last) = self.0.as_mut().filter(|last| last.worker.as_ref() == Some(&exited.worker)) {
            last.log_tail.clone_from(&exited.log_tail);
            last.lived_ms = exited.ran_ms;
        }
    }

    /// Ends the series: a worker has shown that the command works, or the settings changed.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    /// The crashes; `None` if there are none.
    pub(super) fn facts(&self) -> Option<CrashFacts> {
        self.0.clone()
    }
}
