//! Counters that the roles of one load share.

use std::cell::Cell;

/// Jobs in flight. Submitters and workers of one thread share it.
#[derive(Debug, Default)]
pub struct Tally {
    submitted: Cell<u64>,
    finished: Cell<u64>,
    submitting: Cell<bool>,
    parked: Cell<u64>,
}

impl Tally {
    /// Returns a tally for a load with a submitter, which closes it.
    pub fn submitting() -> Self {
        let tally = Self::default();
        tally.submitting.set(true);
        tally
    }

    /// Counts an accepted job.
    pub fn submit(&self) {
        self.submitted.set(self.submitted.get() + 1);
    }

    /// Marks the end of submits.
    pub fn close(&self) {
        self.submitting.set(false);
    }

    /// Counts an accepted result.
    pub fn finish(&self) {
        self.finished.set(self.finished.get() + 1);
    }

    /// Sets the number of jobs with a result to `count`.
    pub fn finished_until_now(&self, count: u64) {
        self.finished.set(count);
    }

    /// Number of jobs with an accepted result.
    pub fn finished(&self) -> u64 {
        self.finished.get()
    }

    /// Counts a worker's take that waits.
    pub fn park(&self) {
        self.parked.set(self.parked.get() + 1);
    }

    /// Counts the response to a waiting take.
    pub fn unpark(&self) {
        self.parked.set(self.parked.get().saturating_sub(1));
    }

    /// Whether any worker is waiting for jobs.
    pub fn is_parked(&self) -> bool {
        self.parked.get() > 0
    }

    /// Whether submitting has ended and every job has its result.
    pub fn is_settled(&self) -> bool {
        !self.submitting.get() && self.finished.get() >= self.submitted.get()
    }
}
