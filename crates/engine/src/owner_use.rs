//! What owners of keys use, for `/metrics`: the busiest are told apart, the others are counted as one.
//!
//! A count is a counter for whoever reads it: it never goes back. So what an owner does while it is not among the
//! busiest stays with the others for good, and its own count goes on where it was when it is among them again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use longshore_model::{OwnerNo, Submitter};

/// The owners that are told apart.
pub const BUSIEST_OWNERS: usize = 50;

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Jobs that were taken in.
    pub submitted: u64,
    /// Jobs that ended.
    pub ended: u64,
    /// How long those that ended ran in the attempt that ended, in milliseconds.
    pub served_ms: u64,
}

impl Use {
    /// Adds what another says.
    pub(crate) fn add(&mut self, other: Self) {
        self.submitted = self.submitted.saturating_add(other.submitted);
        self.ended = self.ended.saturating_add(other.ended);
        self.served_ms = self.served_ms.saturating_add(other.served_ms);
    }
}

/// What the jobs of one commit used, by submitter: nearly always one entry.
#[derive(Debug, Default)]
pub(crate) struct UseBySubmitter(Vec<(Submitter, Use)>);

impl UseBySubmitter {
    pub(crate) fn add(&mut self, submitter: Submitter, one: Use) {
        match self.0.last_mut() {
            Some((last, sum)) if *last == submitter => sum.add(one),
            _ => self.0.push((submitter, one)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (Submitter, Use)> {
        self.0.into_iter()
    }
}

/// Counts what owners use. At most as many entries as there are owners.
#[derive(Debug, Default)]
pub(crate) struct OwnerUse {
    owners: RwLock<HashMap<OwnerNo, Arc<OneOwner>>>,
    others: Counts,
}

#[derive(Debug, Default)]
struct OneOwner {
    is_told_apart: AtomicBool,
    /// Jobs submitted and ended since the server started, also while counted with the others.
    events: AtomicU64,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    submitted: AtomicU64,
    ended: AtomicU64,
    served_ms: AtomicU64,
}

impl Counts {
    fn add(&self, used: Use) {
        self.submitted.fetch_add(used.submitted, Ordering::Relaxed);
        self.ended.fetch_add(used.ended, Ordering::Relaxed);
        self.served_ms.fetch_add(used.served_ms, Ordering::Relaxed);
    }

    fn get(&self) -> Use {
        Use {
            submitted: self.submitted.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
            served_ms: self.served_ms.load(Ordering::Relaxed),
        }
    }
}

impl OwnerUse {
    /// Counts what an owner used.
    pub(crate) fn add(&self, owner: OwnerNo, used: Use) {
        let one = self.of(owner);
        one.events.fetch_add(used.submitted + used.ended, Ordering::Relaxed);
        let counts = if one.is_told_apart.load(Ordering::Relaxed) { &one.counts } else { &self.others };
        counts.add(used);
    }

    fn of(&self, owner: OwnerNo) -> Arc<OneOwner> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = owners.get(&owner) {
            return Arc::clone(one);
        }
        drop(owners);
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = owners.len() < BUSIEST_OWNERS;
        let one = owners.entry(owner).or_insert_with(|| {
            Arc::new(OneOwner { is_told_apart: AtomicBool::new(has_room), ..OneOwner::default() })
        });
        Arc::clone(one)
    }

    /// The busiest owners by number, then all others together (`None`). Which are the busiest is decided here.
    pub(crate) fn snapshot(&self) -> Vec<(Option<OwnerNo>, Use)> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let mut ranked: Vec<_> = owners.iter().collect();
        if ranked.len() > BUSIEST_OWNERS {
            // Of two as busy as each other the one stays that is told apart already.
            ranked.sort_by_cached_key(|(no, one)| {
                let others = !one.is_told_apart.load(Ordering::Relaxed);
                (u64::MAX - one.events.load(Ordering::Relaxed), others, **no)
            });
            for (rank, (_, one)) in ranked.iter().enumerate() {
                one.is_told_apart.store(rank < BUSIEST_OWNERS, Ordering::Relaxed);
            }
            ranked.truncate(BUSIEST_OWNERS);
        }
        ranked.sort_by_key(|(no, _)| **no);
        let busiest = ranked.into_iter().map(|(no, one)| (Some(*no), one.counts.get()));
        busiest.chain([(None, self.others.get())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(submitted: u64) -> Use {
        Use { submitted, ended: 0, served_ms: 0 }
    }

    fn of(snapshot: &[(Option<OwnerNo>, Use)], owner: Option<u32>) -> Option<u64> {
        let found = snapshot.iter().find(|(no, _)| *no == owner.map(OwnerNo));
        found.map(|(_, used)| used.submitted)
    }

    #[test]
    fn fifty_owners_are_told_apart_and_no_count_goes_back() {
        let owners = OwnerUse::default();
        for owner in 0..50 {
            owners.add(OwnerNo(owner), used(1));
        }
        for owner in 50..2_000 {
            owners.add(OwnerNo(owner), used(2));
        }
        owners.add(OwnerNo(70), used(100));
        let first = owners.snapshot();
        assert_eq!(first.len(), 51);
        // What came before they were told apart stays with the others.
        assert_eq!((of(&first, Some(70)), of(&first, None)), (Some(0), Some(1_950 * 2 + 100)));
        owners.add(OwnerNo(70), used(5));
        owners.add(OwnerNo(0), used(3));
        let second = owners.snapshot();
        assert_eq!(of(&second, Some(70)), Some(5));
        // Owner 0 was among the others when it came again; now it is told apart, and goes on from its own count.
        assert_eq!((of(&second, Some(0)), of(&second, None)), (Some(1), Some(4_000 + 3)));
        owners.add(OwnerNo(0), used(1));
        let third = owners.snapshot();
        assert_eq!(of(&third, Some(0)), Some(2));
        for (no, used) in &second {
            let later = of(&third, no.map(|no| no.0));
            assert!(later.is_none_or(|later| later >= used.submitted), "{no:?}");
        }
        assert_eq!(third.len(), 51);
    }

    #[test]
    fn few_owners_are_all_told_apart() {
        let owners = OwnerUse::default();
        owners.add(OwnerNo(3), Use { submitted: 1, ended: 2, served_ms: 3 });
        owners.add(OwnerNo(0), used(1));
        let three = Use { submitted: 1, ended: 2, served_ms: 3 };
        assert_eq!(
            owners.snapshot(),
            [(Some(OwnerNo(0)), used(1)), (Some(OwnerNo(3)), three), (None, Use::default())]
        );
    }

    #[test]
    fn the_jobs_of_a_commit_are_added_up() {
        let by = |owner| Submitter { owner: OwnerNo(owner), key: None };
        let mut sums = UseBySubmitter::default();
        assert!(sums.is_empty());
        for owner in [1, 1, 2] {
            sums.add(by(owner), used(1));
        }
        assert_eq!(sums.into_entries().collect::<Vec<_>>(), [(by(1), used(2)), (by(2), used(1))]);
    }
}
