//! Commit chains: after a batch failed, the later batches of its chain fail too.

use std::collections::BTreeMap;

use longshore_model::ShardId;

use crate::StoreError;

/// The failed chain of each shard. A store uses it to keep the promise of [`Store::commit`](crate::Store::commit) about
/// batches that are in flight together.
#[derive(Clone, Debug, Default)]
pub struct CommitChains {
    failed: BTreeMap<ShardId, (u64, StoreError)>,
}

impl CommitChains {
    /// Checks a batch before it is written. A batch without a chain always passes.
    ///
    /// # Errors
    /// The error of the failed batch, if a batch of this chain or of a larger one failed.
    pub fn check(&self, shard: ShardId, chain: Option<u64>) -> Result<(), StoreError> {
        match (chain, self.failed.get(&shard)) {
            (Some(chain), Some((failed, error))) if chain <= *failed => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Records that a batch of this chain failed. The error of the largest chain is kept; `None` changes nothing.
    pub fn fail(&mut self, shard: ShardId, chain: Option<u64>, error: &StoreError) {
        let Some(chain) = chain else { return };
        let failed = self.failed.entry(shard).or_insert_with(|| (chain, error.clone()));
        if failed.0 < chain {
            *failed = (chain, error.clone());
        }
    }

    /// Forgets the failure of a shard that gets a new owner: its chains count from the start.
    pub fn begin(&mut self, shard: ShardId) {
        self.failed.remove(&shard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_batches_of_a_failed_chain_fail_until_a_larger_chain_starts() {
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
