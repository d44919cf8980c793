//! Commits of the catalog's shard.

use std::sync::Arc;

use longshore_model::{Durability, Epoch, ShardId};
use longshore_planted::{Bug, planted};
use longshore_store::{Batch, Store, StoreError, Write};

use crate::change_note;
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

    /// Commits the writes, all or none. They are synced when this returns. If the store keeps logs, the line that the task notes for
    /// its change is one of the writes.
    ///
    /// # Errors
    ///
    /// The store's error; [`StoreError::StaleEpoch`] if another server has claimed the shard.
    pub(crate) async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let batch = Batch { durability: Durability::Synced, writes, chain: None };
        let made = change_note::made(&batch.writes);
        let line = self.store.with_log_lines().and_then(|store| {
            let note = change_note::note()?;
            Some((store, note.line(made)?, note))
        });
        let (committed, note) = match line {
            Some((store, line, note)) => {
                (store.commit_with_line(ShardId::CATALOG, self.epoch, batch, line), Some(note))
            }
            None => (self.store.commit(ShardId::CATALOG, self.epoch, batch), None),
        };
        if planted(Bug::CatalogAnsweredEarly) {
            return Ok(());
        }
        let result = committed.await;
        self.health.note(&result);
        if let Some(note) = note.filter(|_| result.is_ok()) {
            note.committed();
        }
        result
    }
}
