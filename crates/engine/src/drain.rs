//! Whether the server drains: it hands out no job, and its managed workers end.

use std::sync::atomic::{AtomicU64, Ordering};

use longshore_model::Millis;

/// Since when the server drains. Volatile: a restart ends a drain.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    /// The time in ms; 0 if the server does not drain.
    since: AtomicU64,
}

impl Drain {
    /// Begins a drain at `now`, which must not be 0. A drain that runs keeps its begin.
    pub(crate) fn begin(&self, now: Millis) {
        // An error means that a drain runs.
        let _ = self.since.compare_exchange(0, now.0, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Ends the drain, if there is one.
    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// Returns since when the server drains; `None` if it does not.
    pub(crate) fn since(&self) -> Option<Millis> {
        Some(self.since.load(Ordering::Acquire)).filter(|since| *since > 0).map(Millis)
    }
}

/// The work that a drain waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainProgress {
    /// The number of workers that run a job, managed or external.
    pub busy_workers: u64,
    /// The number of managed workers, also of those that start or stop.
    pub managed_workers: u64,
}
