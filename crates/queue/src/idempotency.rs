//! The jobs that have an `Idempotency-Key`, by the API key that sent it and its text: equal texts sent with different
//! API keys are different promises.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use longshore_model::KeyId;

use crate::jobs::Slot;

/// A job's promise: the API key, and the text of the `Idempotency-Key`.
pub(crate) type Promise = (Option<KeyId>, Box<str>);

/// The newest job of each promise.
#[derive(Debug, Default)]
pub(crate) struct Idempotent {
    jobs: BTreeMap<Promise, Slot>,
}

impl Idempotent {
    /// The job of a promise.
    pub(crate) fn find(&self, promise: &Promise) -> Option<Slot> {
        self.jobs.get(promise).copied()
    }

    /// Gives a promise to a job; an older one with the same promise loses it.
    pub(crate) fn insert(&mut self, promise: Promise, slot: Slot) {
        self.jobs.insert(promise, slot);
    }

    /// Forgets the promise of a job, unless a newer job has it.
    pub(crate) fn remove(&mut self, promise: &Promise, slot: Slot) {
        if self.find(promise) == Some(slot) {
            self.jobs.remove(promise);
        }
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Promise, Slot)> {
        self.jobs.iter().map(|(promise, slot)| (promise, *slot))
    }
}
