//! What jobs used in an hour or a day, by who submitted them.

use longshore_model::{KeyId, OwnerNo, Submitter};
use serde::{Deserialize, Serialize};

use crate::owner_use::Use;

/// The most entries of one endpoint in one hour that have their key; then owners alone, twice as many.
const ENTRIES_MAX: usize = 1_000;

/// Execution time of the jobs of one key, or of the keys of an owner that are not told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobUsage {
    /// The owner; `None` where there are too many to tell them apart.
    #[serde(default)]
    pub owner: Option<OwnerNo>,
    /// The key.
    #[serde(default)]
    pub key: Option<KeyId>,
    /// Jobs that ended.
    pub jobs: u64,
    /// How long they ran in the attempt that ended, in milliseconds.
    pub ms: u64,
}

/// Adds jobs that ended to the entries of a sheet.
pub(super) fn add(entries: &mut Vec<JobUsage>, by: Submitter, used: Use) {
    add_entry(
        entries,
        &JobUsage { owner: Some(by.owner), key: by.key, jobs: used.ended, ms: used.served_ms },
    );
}

/// Adds an entry, of another sheet for instance.
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
    fn jobs_are_added_up_by_key() {
        let mut entries = Vec::new();
        for by in [by(1, 5), by(1, 6), by(1, 5), by(0, 0)] {
            add(&mut entries, by, ONE);
        }
        let sums: Vec<_> =
            entries.iter().map(|entry| (entry.owner.unwrap().0, entry.jobs, entry.ms)).collect();
        assert_eq!(sums, [(1, 2, 20), (1, 1, 10), (0, 1, 10)]);
    }

    #[test]
    fn very_many_keys_and_owners_fill_no_memory() {
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
