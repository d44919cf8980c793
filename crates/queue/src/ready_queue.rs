//! A list of queued jobs by their position in the queue.
//!
//! Jobs of low priority have a separate index, because the fleet starts no workers for them and needs the number of the
//! others. The priority does not change the order: jobs are delivered by position over both indexes.

#[cfg(test)]
use alloc::collections::BTreeSet;

use crate::index::Index;
use crate::jobs::Slot;

/// Queued jobs by position, the lowest first. A queue has three: ready, deferred and purged jobs.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    normal: Index<i64>,
    low: Index<i64>,
}

impl ReadyQueue {
    fn index_mut(&mut self, low_priority: bool) -> &mut Index<i64> {
        if low_priority { &mut self.low } else { &mut self.normal }
    }

    /// Adds a job that the list does not have.
    ///
    /// # Panics
    ///
    /// If the list has the job at this position already.
    pub(crate) fn insert(&mut self, low_priority: bool, order: i64, slot: Slot) {
        assert!(self.index_mut(low_priority).insert(order, slot), "a job is in a list once");
    }

    /// Removes a job and returns whether the list had it.
    pub(crate) fn remove(&mut self, low_priority: bool, order: i64, slot: Slot) -> bool {
        self.index_mut(low_priority).remove(order, slot)
    }

    /// Whether the list has the job at this position.
    pub(crate) fn contains(&self, low_priority: bool, order: i64, slot: Slot) -> bool {
        let index = if low_priority { &self.low } else { &self.normal };
        index.contains(order, slot)
    }

    /// The first job; `None` if the list is empty.
    pub(crate) fn first(&self) -> Option<Slot> {
        match (self.normal.first(), self.low.first()) {
            (Some(normal), Some(low)) => Some(normal.min(low).1),
            (one, other) => one.or(other).map(|(_, slot)| slot),
        }
    }

    /// The number of jobs with a lower position.
    pub(crate) fn len_before(&self, order: i64) -> u64 {
        self.normal.len_below(order) + self.low.len_below(order)
    }

    /// The first job that is not of low priority, with its position; `None` if there is none.
    pub(crate) fn first_normal(&self) -> Option<(i64, Slot)> {
        self.normal.first()
    }

    /// The number of jobs.
    pub(crate) fn len(&self) -> u64 {
        self.normal.len() + self.low.len()
    }

    /// The number of jobs that are not of low priority.
    pub(crate) fn len_normal(&self) -> u64 {
        self.normal.len()
    }

    /// Whether the list has no job.
    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.low.is_empty()
    }

    /// Every job: whether it is of low priority, its position and its slot.
    #[cfg(test)]
    pub(crate) fn all(&self) -> BTreeSet<(bool, i64, Slot)> {
        let normal = self.normal.iter().map(|(order, slot)| (false, order, slot));
        normal.chain(self.low.iter().map(|(order, slot)| (true, order, slot))).collect()
    }

    /// Moves every job of `other` to this list.
    pub(crate) fn append(&mut self, other: &mut Self) {
        append(&mut self.normal, &mut other.normal);
        append(&mut self.low, &mut other.low);
    }
}

/// Moves the entries of the shorter index to the longer one, so that a purge costs the number of jobs that it purges.
fn append(to: &mut Index<i64>, from: &mut Index<i64>) {
    if to.len() < from.len() {
        core::mem::swap(to, from);
    }
    for (order, slot) in core::mem::take(from).iter() {
        assert!(to.insert(order, slot), "a job is in one of two lists");
    }
}
