//! Waiting jobs that nobody gets for a while, because their input could not be read from the disk.
//!
//! They keep their places in the line. Volatile: after a restart the disk is tried again at once.

use alloc::collections::{BTreeMap, BTreeSet};

use longshore_model::Millis;

use crate::jobs::Slot;
use crate::ready_queue::ReadyQueue;

/// The first time after which an unreadable input is tried again. It doubles with every failure.
const PAUSE_MS_MIN: u64 = 1_000;
/// The longest.
const PAUSE_MS_MAX: u64 = 30_000;

/// The jobs that are set aside, and how often the input of each could not be read.
#[derive(Debug, Default)]
pub(crate) struct Aside {
    pub(crate) lanes: ReadyQueue,
    /// When each is tried again.
    returns: BTreeSet<(Millis, Slot)>,
    return_of: BTreeMap<Slot, Millis>,
    /// Also of those that have returned, until they end.
    failures: BTreeMap<Slot, u32>,
}

impl Aside {
    /// Whether no job was ever set aside that is still there: so it is nearly always.
    pub(crate) fn is_unused(&self) -> bool {
        self.failures.is_empty()
    }

    pub(crate) fn put(&mut self, low_priority: bool, order: i64, slot: Slot, now: Millis) {
        let failures = self.failures.entry(slot).or_default();
        let doublings = (*failures).min(u64::BITS - 1);
        *failures = failures.saturating_add(1);
        let pause_ms = PAUSE_MS_MIN.saturating_mul(1 << doublings).min(PAUSE_MS_MAX);
        self.lanes.insert(low_priority, order, slot);
        self.return_of.insert(slot, now + pause_ms);
        self.returns.insert((now + pause_ms, slot));
    }

    /// Whether the job is here.
    pub(crate) fn contains(&self, low_priority: bool, order: i64, slot: Slot) -> bool {
        self.return_of.contains_key(&slot) && self.lanes.contains(low_priority, order, slot)
    }

    /// Takes a job out; whether it was here.
    pub(crate) fn remove(&mut self, low_priority: bool, order: i64, slot: Slot) -> bool {
        let Some(at) = self.return_of.remove(&slot) else { return false };
        self.returns.remove(&(at, slot));
        assert!(self.lanes.remove(low_priority, order, slot), "a job that returns later is in a list");
        true
    }

    /// Forgets a job that is over: its slot may become another's.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.failures.remove(&slot);
    }

    /// Moves all of them to `other`.
    pub(crate) fn append_to(&mut self, other: &mut ReadyQueue) {
        self.returns.clear();
        self.return_of.clear();
        other.append(&mut self.lanes);
    }

    pub(crate) fn next_return(&self) -> Option<Millis> {
        self.returns.first().map(|(at, _)| *at)
    }

    /// A job whose time has come; it stays here until it is removed.
    pub(crate) fn due(&self, now: Millis) -> Option<Slot> {
        self.returns.first().filter(|(at, _)| *at <= now).map(|(_, slot)| *slot)
    }
}
