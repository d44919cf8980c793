//! Commits of the catalog's shard.

use std::sync::Arc;

use longshore_model::{Durability, Epoch, ShardId};
use longshore_store::{Batch, Store, StoreError, Write};

/// Commits resources, keys, settings and JSON rows, which all belong to [`ShardId::CATALOG`].
#[derive(Clone)]
pub(crate) struct CatalogShard {
    store: Arc<dyn Store>,
    epoch: Epoch,
}

impl CatalogShard {
    /// The shard as claimed under `epoch`.
    pub(crate) fn new(store: Arc<dyn Store>, epoch: Epoch) -> Self {
        Self { store, epoch }
    }

    /// Commits the writes, all or none. They are synced when this returns.
    ///
    /// # Errors
    ///
    /// The store's error; [`StoreError::StaleEpoch`] if another server has claimed the shard.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let batch = Batch { durability: Durability::Synced, writes, chain: None };
        self.store.commit(ShardId::CATALOG, self.epoch, batch).await
    }
}
