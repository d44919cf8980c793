//! What the roles of one load know of each other.

use std::cell::Cell;

/// Jobs on their way. Shared by those who submit and those who work; all are on one thread.
#[derive(Debug, Default)]
pub struct Tally {
    submitted: Cell<u64>,
    finished: Cell<u64>,
    submitting: Cell<bool>,
    parked: Cell<u64>,
}

impl Tally {
    /// A tally of somebody who is going to submit.
    pub fn submitting() -> Self {
        let tally = Self::default();
        tally.submitting.set(true);
        tally
    }

    /// A job was accepted.
    pub fn submit(&self) {
        self.submitted.set(self.submitted.get() + 1);
    }

    /// No more jobs will come.
    pub fn close(&self) {
        self.submitting.set(false);
    }

    /// A job's result was accepted.
    pub fn finish(&self) {
        self.finished.set(self.finished.get() + 1);
    }

    /// So many jobs have their result by now.
    pub fn finished_until_now(&self, count: u64) {
        self.finished.set(count);
    }

    /// Jobs whose result was accepted.
    pub fn finished(&self) -> u64 {
        self.finished.get()
    }

    /// A worker has asked for jobs.
    pub fn park(&self) {
        self.parked.set(self.parked.get() + 1);
    }

    /// A worker that asked was answered.
    pub fn unpark(&self) {
        self.parked.set(self.parked.get().saturating_sub(1));
    }

    /// Whether some worker waits for jobs.
    pub fn is_parked(&self) -> bool {
        self.parked.get() > 0
    }

    /// Whether every job that was and will be submitted has its result.
    pub fn is_settled(&self) -> bool {
        !self.submitting.get() && self.finished.get() >= self.submitted.get()
    }
}
