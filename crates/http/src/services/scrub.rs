//! The report of the scrub, which reads stored files in the background, for `/metrics` and `/readyz?verbose`.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The report, shared by the scrub and the routes.
#[derive(Debug, Default)]
pub struct ScrubReport {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// The bytes that were read since the start of the server.
    pub(crate) bytes: u64,
    /// The number of complete passes.
    pub(crate) passes: u64,
    /// The number of damaged places that this pass or the previous one found.
    pub(crate) damaged: u64,
}

impl ScrubReport {
    /// Adds to the number of bytes that were read.
    pub fn read(&self, bytes: u64) {
        self.state().bytes += bytes;
    }

    /// Adds one damaged place.
    pub fn damaged(&self) {
        self.state().damaged += 1;
    }

    /// Ends a pass that found this number of damaged places.
    pub fn pass_over(&self, damaged: u64) {
        let mut state = self.state();
        state.passes += 1;
        state.damaged = damaged;
    }

    pub(crate) fn snapshot(&self) -> State {
        *self.state()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No change panics halfway, so the state behind a poisoned lock is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
