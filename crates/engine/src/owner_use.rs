//! Counts the jobs of key owners for `/metrics`: the busiest owners each have counters, the others share one set.
//!
//! A counter never decreases. Jobs that an owner had while it was not among the busiest stay in the shared counters;
//! the owner's own counters continue from their last values when the owner is among the busiest again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use longshore_model::{OwnerNo, Submitter};

/// Limit of the owners with counters of their own in `/metrics`.
pub const BUSIEST_OWNERS: usize = 50;

/// Counts of jobs and their execution time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Submits that were accepted.
    pub submitted: u64,
    /// Ends of jobs; a client retry allows a job another end.
    pub ended: u64,
    /// Execution time of the jobs that ended, in their last attempt, in ms.
    pub served_ms: u64,
}

impl Use {
    /// Adds other counts, saturating.
    pub(crate) fn add(&mut self, other: Self) {
        self.submitted = self.submitted.saturating_add(other.submitted);
        self.ended = self.ended.saturating_add(other.ended);
        self.served_ms = self.served_ms.saturating_add(other.served_ms);
    }
}

/// The counts of one commit's jobs by submitter. Entries of one submitter in a row are merged, so there is usually one.
#[derive(Debug, Default)]
pub(crate) struct UseBySubmitter(Vec<(Submitter, Use)>);

impl UseBySubmitter {
    /// Adds counts of a submitter.
    pub(crate) fn add(&mut self, submitter: Submitter, one: Use) {
        match self.0.last_mut() {
            Some((last, sum)) if *last == submitter => sum.add(one),
            _ => self.0.push((submitter, one)),
        }
    }

    /// Returns whether nothing was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entries in the order of counting. A submitter can have several.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (Submitter, Use)> {
        self.0.into_iter()
    }
}

/// The counters of all owners since the start of the server. Volatile; one entry per owner with a job.
#[derive(Debug, Default)]
pub(crate) struct OwnerUse {
    owners: RwLock<HashMap<OwnerNo, Arc<OwnerCounts>>>,
    others: Counts,
}

/// The counters of one owner.
#[derive(Debug, Default)]
struct OwnerCounts {
    /// The owner is among the busiest: its jobs count here, not in the shared counters.
    is_separate: AtomicBool,
    /// Submits and ends since the start of the server, also while they count in the shared counters.
    events: AtomicU64,
    counts: Counts,
}

/// [`Use`] as atomic counters.
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
    /// Adds counts of an owner.
    pub(crate) fn add(&self, owner: OwnerNo, used: Use) {
        let one = self.of(owner);
        one.events.fetch_add(used.submitted + used.ended, Ordering::Relaxed);
        let counts = if one.is_separate.load(Ordering::Relaxed) { &one.counts } else { &self.others };
        counts.add(used);
    }

    /// Returns the counters of an owner, new ones for its first job.
    fn of(&self, owner: OwnerNo) -> Arc<OwnerCounts> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = owners.get(&owner) {
            return Arc::clone(one);
        }
        drop(owners);
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        let has_room = owners.len() < BUSIEST_OWNERS;
        let one = owners.entry(owner).or_insert_with(|| {
            Arc::new(OwnerCounts { is_separate: AtomicBool::new(has_room), ..OwnerCounts::default() })
        });
        Arc::clone(one)
    }

    /// Returns the counts of the busiest owners by number, then the shared counts of all others (`None`). Each call
    /// decides anew which owners are the busiest: those with the most submits and ends since the start.
    pub(crate) fn snapshot(&self) -> Vec<(Option<OwnerNo>, Use)> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let mut ranked: Vec<_> = owners.iter().collect();
        if ranked.len() > BUSIEST_OWNERS {
            // Among equally busy owners, those with separate counters keep them.
            ranked.sort_by_cached_key(|(no, one)| {
                let others = !one.is_separate.load(Ordering::Relaxed);
                (u64::MAX - one.events.load(Ordering::Relaxed), others, **no)
            });
            for (rank, (_, one)) in ranked.iter().enumerate() {
                one.is_separate.store(rank < BUSIEST_OWNERS, Ordering::Relaxed);
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
    fn fifty_owners_have_separate_counters_and_no_counter_decreases() {
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
        // Jobs from before the owner was among the busiest stay in the shared counters.
        assert_eq!((of(&first, Some(70)), of(&first, None)), (Some(0), Some(1_950 * 2 + 100)));
        owners.add(OwnerNo(70), used(5));
        owners.add(OwnerNo(0), used(3));
        let second = owners.snapshot();
        assert_eq!(of(&second, Some(70)), Some(5));
        // The 3 jobs of owner 0 count in the shared counters; from this snapshot on its own counter continues at 1.
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
    fn few_owners_all_have_separate_counters() {
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
    fn the_jobs_of_a_commit_are_summed_by_submitter() {
        let by = |owner| Submitter { owner: OwnerNo(owner), key: None };
        let mut sums = UseBySubmitter::default();
        assert!(sums.is_empty());
        for owner in [1, 1, 2] {
            sums.add(by(owner), used(1));
        }
        assert_eq!(sums.into_entries().collect::<Vec<_>>(), [(by(1), used(2)), (by(2), used(1))]);
    }
}
