//! What the reading of stored files in the background has found so far, for `/metrics` and `/readyz?verbose`.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by who reads and who tells.
#[derive(Debug, Default)]
pub struct ScrubReport {
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// Bytes read since the start.
    pub(crate) bytes: u64,
    /// How often everything was read.
    pub(crate) passes: u64,
    /// Damaged places that were found in this pass or the one before.
    pub(crate) damaged: u64,
}

impl ScrubReport {
    /// So many more bytes were read.
    pub fn read(&self, bytes: u64) {
        self.state().bytes += bytes;
    }

    /// One more place is damaged.
    pub fn damaged(&self) {
        self.state().damaged += 1;
    }

    /// Everything was read; so many places are damaged, and no other.
    pub fn pass_over(&self, damaged: u64) {
        let mut state = self.state();
        state.passes += 1;
        state.damaged = damaged;
    }

    pub(crate) fn snapshot(&self) -> State {
        *self.state()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics half-way through a change, so what a poisoned lock guards is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
