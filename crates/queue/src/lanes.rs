//! The waiting jobs in order: one lane for normal jobs, one for those of low priority.
//!
//! Order is first in, first out over both lanes; they are apart only so that the fleet's demand, which low
//! priority never causes, can be read off in one step.

use alloc::collections::BTreeSet;

use crate::jobs::Slot;

/// The waiting jobs, by their place in the queue.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    normal: BTreeSet<(i64, Slot)>,
    low: BTreeSet<(i64, Slot)>,
}

impl Lanes {
    fn lane(&mut self, low_priority: bool) -> &mut BTreeSet<(i64, Slot)> {
        if low_priority { &mut self.low } else { &mut self.normal }
    }

    pub(crate) fn insert(&mut self, low_priority: bool, order: i64, slot: Slot) {
        self.lane(low_priority).insert((order, slot));
    }

    pub(crate) fn remove(&mut self, low_priority: bool, order: i64, slot: Slot) {
        self.lane(low_priority).remove(&(order, slot));
    }

    /// The job that is next in line.
    pub(crate) fn first(&self) -> Option<Slot> {
        match (self.normal.first(), self.low.first()) {
            (Some(normal), Some(low)) => Some(normal.min(low).1),
            (one, other) => one.or(other).map(|(_, slot)| *slot),
        }
    }

    /// The normal job that is next in line.
    pub(crate) fn first_normal(&self) -> Option<Slot> {
        self.normal.first().map(|(_, slot)| *slot)
    }

    pub(crate) fn len(&self) -> u64 {
        (self.normal.len() + self.low.len()) as u64
    }

    pub(crate) fn len_normal(&self) -> u64 {
        self.normal.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.low.is_empty()
    }

    /// Both lanes: whether low, place, job.
    #[cfg(test)]
    pub(crate) fn all(&self) -> BTreeSet<(bool, i64, Slot)> {
        let normal = self.normal.iter().map(|(order, slot)| (false, *order, *slot));
        normal.chain(self.low.iter().map(|(order, slot)| (true, *order, *slot))).collect()
    }

    /// Moves everything from `other` here.
    pub(crate) fn append(&mut self, other: &mut Self) {
        append(&mut self.normal, &mut other.normal);
        append(&mut self.low, &mut other.low);
    }
}

/// Moves the smaller into the larger: the standard `append` walks both, which would cost a second purge the
/// length of the first.
fn append(to: &mut BTreeSet<(i64, Slot)>, from: &mut BTreeSet<(i64, Slot)>) {
    if to.len() < from.len() {
        core::mem::swap(to, from);
    }
    to.extend(core::mem::take(from));
}
