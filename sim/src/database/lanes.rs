//! The statements of lanes and flushers.

use std::sync::Arc;

use longshore_model::ShardId;
use longshore_planted::{Bug, planted};
use longshore_postgres::{
    BatchPlace, BatchResult, FlushSession, LaneDatabase, LaneSession, RAISED_BY, ShardPlace, ShardPlaces,
    StatementError,
};
use longshore_store::{StoreError, Write};

use super::backend::{Backend, Session};
use super::tables::TableChange;
use super::{NodeView, not_done};

/// What a batch changes.
pub struct BatchChanges {
    pub(super) writes: Arc<Vec<Write>>,
    /// Whether its sender does not wait for the disk.
    pub(super) is_buffered: bool,
}

impl LaneDatabase for NodeView {
    type Changes = BatchChanges;
    type Lane = Session;
    type Flusher = Session;

    async fn open_lane(&self) -> Result<Session, StoreError> {
        Session::open(self).await
    }

    async fn open_flusher(&self) -> Result<Session, StoreError> {
        Session::open(self).await
    }
}

impl LaneSession<BatchChanges> for Session {
    fn is_closed(&self) -> bool {
        self.is_broken()
    }

    fn write(
        &self,
        changes: Arc<BatchChanges>,
        place: BatchPlace,
    ) -> impl Future<Output = Result<BatchResult, StatementError>> + Send + 'static {
        self.call(move |backend| async move { backend.commit(&changes, place).await })
    }

    async fn raise(&self, shards: Vec<(ShardId, i64)>) -> Result<ShardPlaces, StoreError> {
        let raised = self.call(move |backend| async move {
            let places = backend.places(shards.iter().map(|(shard, _)| *shard));
            let still = shards.iter().filter_map(|(shard, epoch)| {
                let place = places.get(shard).filter(|place| place.epoch == *epoch)?;
                Some((*shard, ShardPlace { epoch: epoch + RAISED_BY, ..*place }))
            });
            let raised: Vec<_> = still.collect();
            backend.database.change(TableChange::Places(raised.clone())).map_err(not_done)?;
            backend.database.flush().await;
            Ok(places.into_iter().chain(raised).collect())
        });
        raised.await.map_err(|failed| failed.error)
    }
}

impl FlushSession for Session {
    fn is_closed(&self) -> bool {
        self.is_broken()
    }

    async fn flush(&self, shards: Vec<ShardId>) -> Result<ShardPlaces, StatementError> {
        let flushed = self.call(move |backend| async move {
            let places = backend.places(shards.into_iter());
            backend.database.flush().await;
            Ok(places)
        });
        flushed.await
    }
}

impl Backend {
    fn places(&self, shards: impl Iterator<Item = ShardId>) -> ShardPlaces {
        let state = self.database.state();
        shards.filter_map(|shard| Some((shard, *state.done.shards.get(&shard)?))).collect()
    }

    /// As the function `commit_batch` of the schema: the batch takes effect under its epoch, after the batch before it.
    async fn commit(&self, changes: &BatchChanges, place: BatchPlace) -> Result<BatchResult, StatementError> {
        let shard = place.shard;
        let Some(present) = self.places(std::iter::once(shard)).remove(&shard) else {
            return Ok(BatchResult::Missing);
        };
        let ShardPlace { epoch, batches } = present;
        let fits = epoch == place.epoch && batches == place.batches_before;
        if !fits && !planted(Bug::NoFence) {
            return Ok(BatchResult::Refused { epoch, batches });
        }
        let change = TableChange::Batch {
            shard,
            place: ShardPlace { epoch, batches: batches + 1 },
            writes: Arc::clone(&changes.writes),
            is_buffered: changes.is_buffered,
        };
        self.database.change(change).map_err(not_done)?;
        if place.is_synced {
            self.database.flush().await;
        }
        Ok(BatchResult::Written)
    }
}
