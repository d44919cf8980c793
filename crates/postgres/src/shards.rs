//! What the store knows of the shards that it claimed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::{Epoch, ShardId};
use longshore_store::{CommitChains, StoreError};
use tokio::sync::watch;

use crate::sessions::{ShardPlace, ShardPlaces};

const FORGOTTEN: &str = "the database does not have what it had made durable: a standby that was behind has become the primary, \
    or an earlier state was restored; the next start goes on with what the database has";

/// The claimed shards and their failed chains. Shared by the store, its lanes and its flushers.
#[derive(Debug, Default)]
pub(crate) struct Shards {
    state: Mutex<State>,
    /// Set when the database does not have what it made durable. Nothing is written from then on.
    forgotten: watch::Sender<Option<StoreError>>,
}

#[derive(Debug, Default)]
struct State {
    claims: BTreeMap<ShardId, Claim>,
    chains: CommitChains,
}

/// The right of this server to write a shard, which its epoch proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The epoch that the claimer was given.
    pub given: Epoch,
    /// The epoch in the database. It is larger than `given` after a connection broke: then the epoch was raised, so that the
    /// batches of the broken connection can no longer take effect.
    pub stored: i64,
    /// The number of batches that the shard has when every batch in flight has taken effect.
    pub batches: i64,
    /// The number of batches that the database has made durable, as far as this is known.
    pub durable: i64,
}

impl Claim {
    /// Whether a database with this place has forgotten batches that it made durable: a standby that was behind has become the
    /// primary, or an earlier state was restored.
    fn is_ahead_of(&self, place: ShardPlace) -> bool {
        place.epoch < self.stored || place.batches < self.durable
    }
}

impl Shards {
    fn state(&self) -> MutexGuard<'_, State> {
        // No change of the state panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a claim, under which chains count from the start.
    pub(crate) fn claimed(&self, shard: ShardId, claim: Claim) {
        let mut state = self.state();
        state.claims.insert(shard, claim);
        state.chains.begin(shard);
    }

    /// Forgets the claim of a shard.
    pub(crate) fn released(&self, shard: ShardId) {
        self.state().claims.remove(&shard);
    }

    /// Returns the claim of a shard.
    pub(crate) fn claim(&self, shard: ShardId) -> Option<Claim> {
        self.state().claims.get(&shard).copied()
    }

    /// Returns every claim that `is_wanted` accepts.
    pub(crate) fn claims(&self, is_wanted: impl Fn(ShardId) -> bool) -> Vec<(ShardId, Claim)> {
        let state = self.state();
        state
            .claims
            .iter()
            .filter(|(shard, _)| is_wanted(**shard))
            .map(|(shard, claim)| (*shard, *claim))
            .collect()
    }

    /// Checks a batch before it is sent, and counts it. Returns the claim from before.
    ///
    /// # Errors
    /// [`StoreError::StaleEpoch`] if the shard is not claimed under `given`; the error of the chain if it has failed.
    pub(crate) fn send(&self, shard: ShardId, given: Epoch, chain: Option<u64>) -> Result<Claim, StoreError> {
        let mut state = self.state();
        state.chains.check(shard, chain)?;
        let claim = state.claims.get_mut(&shard);
        let current = claim.as_ref().map_or(Epoch(given.0 + 1), |claim| claim.given);
        match claim.filter(|claim| claim.given == given) {
            None => Err(StoreError::StaleEpoch { shard, ours: given, current }),
            Some(claim) => {
                let before = *claim;
                claim.batches += 1;
                Ok(before)
            }
        }
    }

    /// Sets the number of batches after some of those in flight did not take effect. A claim made meanwhile stays as it is.
    pub(crate) fn set_batches(&self, shard: ShardId, stored: i64, batches: i64) {
        if let Some(claim) = self.state().claims.get_mut(&shard)
            && claim.stored == stored
        {
            claim.batches = batches;
        }
    }

    /// Notes that the stored epoch was raised from `before`. A claim made meanwhile stays as it is.
    pub(crate) fn raised(&self, shard: ShardId, before: i64, stored: i64, batches: i64) {
        if let Some(claim) = self.state().claims.get_mut(&shard)
            && claim.stored == before
        {
            (claim.stored, claim.batches) = (stored, batches);
        }
    }

    /// Notes that the first `batches` of a shard are durable. The number does not depend on the epoch.
    pub(crate) fn durable(&self, shard: ShardId, batches: i64) {
        if let Some(claim) = self.state().claims.get_mut(&shard) {
            claim.durable = claim.durable.max(batches);
        }
    }

    /// Compares the places of shards in the database with what it made durable.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the database has forgotten batches, now or at an earlier call.
    pub(crate) fn check_places(&self, places: &ShardPlaces) -> Result<(), StoreError> {
        let is_ahead = |(shard, place): (&ShardId, &ShardPlace)| {
            self.claim(*shard).is_some_and(|claim| claim.is_ahead_of(*place))
        };
        if places.iter().any(is_ahead) {
            self.forgotten.send_replace(Some(StoreError::Unusable(FORGOTTEN.to_owned())));
        }
        self.forgotten.borrow().clone().map_or(Ok(()), Err)
    }

    /// The error of [`Shards::check_places`], once there is one.
    pub(crate) fn forgotten(&self) -> watch::Receiver<Option<StoreError>> {
        self.forgotten.subscribe()
    }

    /// Fails with the error of the chain if it has failed.
    pub(crate) fn check_chain(&self, shard: ShardId, chain: Option<u64>) -> Result<(), StoreError> {
        self.state().chains.check(shard, chain)
    }

    /// Notes that a batch of the chain failed.
    pub(crate) fn fail_chain(&self, shard: ShardId, chain: Option<u64>, error: &StoreError) {
        self.state().chains.fail(shard, chain, error);
    }
}
