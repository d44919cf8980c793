//! The index of jobs by idempotency key. Equal `Idempotency-Key` texts of different API keys are different idempotency
//! keys.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use longshore_model::KeyId;

use crate::jobs::Slot;

/// The API key of the submit (`None`: the job's row names none), and the text of its `Idempotency-Key` header.
pub(crate) type IdempotencyKey = (Option<KeyId>, Box<str>);

/// The newest job of each idempotency key. Derived from the rows.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyIndex {
    jobs: BTreeMap<IdempotencyKey, Slot>,
}

impl IdempotencyIndex {
    /// The newest job with this key; `None` if there is none. The job may have expired.
    pub(crate) fn find(&self, key: &IdempotencyKey) -> Option<Slot> {
        self.jobs.get(key).copied()
    }

    /// Maps the key to this job, and no longer to an earlier one.
    pub(crate) fn insert(&mut self, key: IdempotencyKey, slot: Slot) {
        self.jobs.insert(key, slot);
    }

    /// Removes the key of this job. A key that maps to a newer job stays.
    pub(crate) fn remove(&mut self, key: &IdempotencyKey, slot: Slot) {
        if self.find(key) == Some(slot) {
            self.jobs.remove(key);
        }
    }

    /// Every key with its job, in the order of the keys.
    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&IdempotencyKey, Slot)> {
        self.jobs.iter().map(|(key, slot)| (key, *slot))
    }
}
