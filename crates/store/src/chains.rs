//! Batches that rest on others: what comes after a failure is not to be kept without what failed.

use std::collections::BTreeMap;

use longshore_model::ShardId;

use crate::StoreError;

/// The last failure of each shard. For stores to keep: what [`Store::commit`](crate::Store::commit) promises of batches
/// that are on their way together.
#[derive(Clone, Debug, Default)]
pub struct CommitChains {
    failed: BTreeMap<ShardId, (u64, StoreError)>,
}

impl CommitChains {
    /// Whether nothing failed that a batch of this chain may rest on; else what it was.
    pub fn check(&self, shard: ShardId, chain: Option<u64>) -> Result<(), StoreError> {
        match (chain, self.failed.get(&shard)) {
            (Some(chain), Some((failed, error))) if chain <= *failed => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// A batch of this chain failed.
    pub fn fail(&mut self, shard: ShardId, chain: Option<u64>, error: &StoreError) {
        let Some(chain) = chain else { return };
        let failed = self.failed.entry(shard).or_insert_with(|| (chain, error.clone()));
        if failed.0 < chain {
            *failed = (chain, error.clone());
        }
    }

    /// The shard has a new owner, who counts from the start.
    pub fn begin(&mut self, shard: ShardId) {
        self.failed.remove(&shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rests_on_a_failure_fails_until_its_sender_has_heard_of_it() {
        let mut chains = CommitChains::default();
        let (ours, other) = (ShardId(1), ShardId(2));
        assert!(chains.check(ours, Some(0)).is_ok());
        chains.fail(ours, Some(3), &StoreError::Full("first".into()));
        chains.fail(ours, Some(2), &StoreError::Io("late".into()));
        chains.fail(ours, None, &StoreError::Io("alone".into()));
        assert!(matches!(chains.check(ours, Some(3)), Err(StoreError::Full(_))));
        for free in [Some(4), None] {
            assert!(chains.check(ours, free).is_ok());
        }
        assert!(chains.check(other, Some(0)).is_ok());
        chains.begin(ours);
        assert!(chains.check(ours, Some(0)).is_ok());
    }
}
