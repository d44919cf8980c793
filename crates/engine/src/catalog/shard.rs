//! Commits of the catalog's shard.

use std::sync::Arc;

use longshore_model::{Durability, Epoch, ShardId};
use longshore_planted::{Bug, planted};
use longshore_store::{Batch, Store, StoreError, Write};

use crate::store_health::StoreHealth;

/// Commits resources, keys, settings and JSON rows, which all belong to [`ShardId::CATALOG`].
#[derive(Clone)]
pub(crate) struct CatalogShard {
    store: Arc<dyn Store>,
    epoch: Epoch,
    health: Arc<StoreHealth>,
}

impl CatalogShard {
    /// The shard as claimed under `epoch`. Results of commits are noted in `health`.
    pub(crate) fn new(store: Arc<dyn Store>, epoch: Epoch, health: Arc<StoreHealth>) -> Self {
        Self { store, epoch, health }
    }

    /// Commits the writes, all or none. They are synced when this returns.
    ///
    /// # Errors
    ///
    /// The store's error; [`StoreError::StaleEpoch`] if another server has claimed the shard.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let batch = Batch { durability: Durability::Synced, writes, chain: None };
        let committed = self.store.commit(ShardId::CATALOG, self.epoch, batch);
        if planted(Bug::CatalogAnsweredEarly) {
            return Ok(());
        }
        let result = committed.await;
        self.health.note(&result);
        result
    }
}
