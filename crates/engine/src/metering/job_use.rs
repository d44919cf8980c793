//! Execution time of jobs in an hour or a day, by submitter.

use longshore_model::{KeyId, OwnerNo, Submitter};
use serde::{Deserialize, Serialize};

use crate::owner_use::Use;

/// Limit of the entries of one sheet with a key. Further keys are added to an entry of their owner; owners over twice
/// this limit are added to one entry without an owner.
const ENTRIES_MAX: usize = 1_000;

/// Execution time of the jobs of one key; of several keys of an owner, or of several owners, over the limit of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobUsage {
    /// The owner of the keys; `None` for the owners over the limit of entries.
    #[serde(default)]
    pub owner: Option<OwnerNo>,
    /// The key that submitted the jobs; `None` for keys over the limit of entries, and for jobs without a key.
    #[serde(default)]
    pub key: Option<KeyId>,
    /// How many jobs ended.
    pub jobs: u64,
    /// Execution time of the jobs in their last attempt, in ms.
    pub ms: u64,
}

/// Adds the ended jobs of one submitter to the entries of a sheet.
pub(super) fn add(entries: &mut Vec<JobUsage>, by: Submitter, used: Use) {
    add_entry(
        entries,
        &JobUsage { owner: Some(by.owner), key: by.key, jobs: used.ended, ms: used.served_ms },
    );
}

/// Adds an entry to the entries of a sheet: to the one of the same owner and key if there is one.
pub(super) fn add_entry(entries: &mut Vec<JobUsage>, one: &JobUsage) {
    let same = |entry: &&mut JobUsage| (entry.owner, entry.key) == (one.owner, one.key);
    if let Some(entry) = entries.iter_mut().find(same) {
        entry.jobs = entry.jobs.saturating_add(one.jobs);
        entry.ms = entry.ms.saturating_add(one.ms);
    } else if one.key.is_some() && entries.len() >= ENTRIES_MAX {
        add_entry(entries, &JobUsage { key: None, ..one.clone() });
    } else if one.owner.is_some() && entries.len() >= 2 * ENTRIES_MAX {
        add_entry(entries, &JobUsage { key: None, owner: None, ..one.clone() });
    } else {
        entries.push(one.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(owner: u32, key: u64) -> Submitter {
        Submitter { owner: OwnerNo(owner), key: KeyId::from_number(key) }
    }

    const ONE: Use = Use { submitted: 0, ended: 1, served_ms: 10 };

    #[test]
    fn jobs_are_summed_by_key() {
        let mut entries = Vec::new();
        for by in [by(1, 5), by(1, 6), by(1, 5), by(0, 0)] {
            add(&mut entries, by, ONE);
        }
        let sums: Vec<_> =
            entries.iter().map(|entry| (entry.owner.unwrap().0, entry.jobs, entry.ms)).collect();
        assert_eq!(sums, [(1, 2, 20), (1, 1, 10), (0, 1, 10)]);
    }

    #[test]
    fn the_number_of_entries_is_limited() {
        let mut entries = Vec::new();
        for number in 0..5_000 {
            add(&mut entries, by(number, u64::from(number) + 1), ONE);
        }
        assert_eq!(entries.len(), 2 * ENTRIES_MAX + 1);
        assert_eq!(entries.iter().map(|entry| entry.jobs).sum::<u64>(), 5_000);
        let json = serde_json::to_vec(&entries).unwrap();
        assert_eq!(serde_json::from_slice::<Vec<JobUsage>>(&json).unwrap(), entries);
    }
}
