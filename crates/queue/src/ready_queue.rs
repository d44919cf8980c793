//! The waiting jobs in order: one lane for normal jobs, one for those of low priority.
//!
//! Order is first in, first out over both lanes; they are apart only so that the fleet's demand, which low
//! priority never causes, can be read off in one step.

#[cfg(test)]
use alloc::collections::BTreeSet;

use crate::index::Index;
use crate::jobs::Slot;

/// The waiting jobs, by their place in the queue.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    normal: Index<i64>,
    low: Index<i64>,
}

impl ReadyQueue {
    fn lane(&mut self, low_priority: bool) -> &mut Index<i64> {
        if low_priority { &mut self.low } else { &mut self.normal }
    }

    /// Adds a job that is not here yet.
    pub(crate) fn insert(&mut self, low_priority: bool, order: i64, slot: Slot) {
        assert!(self.lane(low_priority).insert(order, slot), "a job is in a list once");
    }

    /// Takes a job out; whether it was here.
    pub(crate) fn remove(&mut self, low_priority: bool, order: i64, slot: Slot) -> bool {
        self.lane(low_priority).remove(order, slot)
    }

    /// Whether the job is here.
    pub(crate) fn contains(&self, low_priority: bool, order: i64, slot: Slot) -> bool {
        let lane = if low_priority { &self.low } else { &self.normal };
        lane.contains(order, slot)
    }

    /// The job that is next in line.
    pub(crate) fn first(&self) -> Option<Slot> {
        match (self.normal.first(), self.low.first()) {
            (Some(normal), Some(low)) => Some(normal.min(low).1),
            (one, other) => one.or(other).map(|(_, slot)| slot),
        }
    }

    /// How many jobs are in line before this place.
    pub(crate) fn len_before(&self, order: i64) -> u64 {
        self.normal.len_below(order) + self.low.len_below(order)
    }

    /// The normal job that is next in line.
    pub(crate) fn first_normal(&self) -> Option<(i64, Slot)> {
        self.normal.first()
    }

    pub(crate) fn len(&self) -> u64 {
        self.normal.len() + self.low.len()
    }

    pub(crate) fn len_normal(&self) -> u64 {
        self.normal.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.low.is_empty()
    }

    /// Both lanes: whether low, place, job.
    #[cfg(test)]
    pub(crate) fn all(&self) -> BTreeSet<(bool, i64, Slot)> {
        let normal = self.normal.iter().map(|(order, slot)| (false, order, slot));
        normal.chain(self.low.iter().map(|(order, slot)| (true, order, slot))).collect()
    }

    /// Moves everything from `other` here.
    pub(crate) fn append(&mut self, other: &mut Self) {
        append(&mut self.normal, &mut other.normal);
        append(&mut self.low, &mut other.low);
    }
}

/// Moves the smaller into the larger, so that a second purge does not cost the length of the first.
fn append(to: &mut Index<i64>, from: &mut Index<i64>) {
    if to.len() < from.len() {
        core::mem::swap(to, from);
    }
    for (order, slot) in core::mem::take(from).iter() {
        assert!(to.insert(order, slot), "a job is in one of two lists");
    }
}
