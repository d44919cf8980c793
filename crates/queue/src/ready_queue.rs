//! A list of queued jobs by their position in the queue.
//!
//! Jobs of low priority have a separate index, because the fleet starts no workers for them and needs the number of the
//! others. The priority does not change the order: jobs are delivered by position over both indexes.

#[cfg(test)]
use alloc::collections::BTreeSet;

use crate::index::Index;
use crate::jobs::Slot;

/// The largest number of jobs that were taken before, and that are looked at for the oldest one.
const TAKEN_MAX: usize = 100;

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

    /// Jobs that are not of low priority, of which one waits longest: the first that entered at the back, and the one that was put
    /// back to the front before the others there. Positions at the front are below 0.
    ///
    /// A job that was taken before may have entered the queue anew at the position that it had, so the jobs behind it may wait
    /// longer: they are looked at.
    pub(crate) fn oldest_normal(
        &self,
        was_taken: impl Fn(Slot) -> bool + Copy,
    ) -> impl Iterator<Item = Slot> {
        let has_front = self.normal.first().is_some_and(|(order, _)| order < 0);
        let front = has_front.then(|| self.normal.descending(Some(0)));
        let front = through_first(front.into_iter().flatten().map(|(_, slot)| slot), was_taken);
        let back = through_first(self.normal.ascending(Some(0)).map(|(_, slot)| slot), was_taken);
        front.chain(back)
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

    /// The slot of every job, in the order of positions within each priority.
    pub(crate) fn slots(&self) -> impl Iterator<Item = Slot> {
        self.normal.iter().chain(self.low.iter()).map(|(_, slot)| slot)
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

/// The jobs that were taken before, up to the first other one; at most `TAKEN_MAX`.
fn through_first(
    jobs: impl Iterator<Item = Slot>,
    was_taken: impl Fn(Slot) -> bool,
) -> impl Iterator<Item = Slot> {
    let mut goes_on = true;
    jobs.take(TAKEN_MAX).take_while(move |slot| core::mem::replace(&mut goes_on, was_taken(*slot)))
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
