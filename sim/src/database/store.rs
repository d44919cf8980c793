//! The store of the node that owns the shards: the lanes of the real one, over the simulated database.

use std::sync::Arc;

use longshore_model::{Counters, Durability, EndedAttempt, EndpointNo, Epoch, JobKey, JobRow, ShardId};
use longshore_postgres::{LaneWriter, Settling, ShardPlace, StatementError};
use longshore_store::{
    Batch, Catalog, ChunkRow, MemoryStore, OutcomeRow, Payload, Store, StoreError, StoreFuture, StreamRow,
    WebhookRow,
};
use tokio::sync::Mutex;

use super::backend::Session;
use super::lanes::BatchChanges;
use super::tables::TableChange;
use super::{NodeView, not_done};
use crate::scheduler::Process;

/// The rows as the owner sees them.
pub struct SharedStore {
    lanes: LaneWriter<NodeView>,
    settling: Settling,
    view: NodeView,
    node: i32,
    /// The epoch of the cluster under which the node became the owner.
    epoch: i64,
    reader: Mutex<Option<Arc<Session>>>,
}

impl SharedStore {
    /// Opens the store of a node that has become the owner, with tasks of its process.
    pub fn open(view: NodeView, node: i32, epoch: i64, process: &Process) -> Self {
        let lanes = LaneWriter::start(&view, &|task| process.spawn(task));
        Self { settling: lanes.settling(), lanes, view, node, epoch, reader: Mutex::default() }
    }

    /// The connection that reads, after the lanes have settled what broken connections left.
    async fn session(&self) -> Result<Arc<Session>, StoreError> {
        self.settling.wait().await?;
        let mut reader = self.reader.lock().await;
        if let Some(session) = reader.as_ref().filter(|session| !session.is_broken()) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::open(&self.view).await?);
        *reader = Some(Arc::clone(&session));
        Ok(session)
    }

    fn read<T: Send + 'static>(
        &self,
        query: impl Fn(&MemoryStore) -> StoreFuture<'_, T> + Clone + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            match self.read_once(query.clone()).await {
                Err(StatementError { breaks_connection: true, .. }) => {
                    self.read_once(query).await.map_err(|failed| failed.error)
                }
                result => result.map_err(|failed| failed.error),
            }
        })
    }

    async fn read_once<T: Send + 'static>(
        &self,
        query: impl Fn(&MemoryStore) -> StoreFuture<'_, T> + Send + 'static,
    ) -> Result<T, StatementError> {
        let session = self.session().await.map_err(not_done)?;
        let read = session.call(move |backend| async move {
            let rows = backend.database.rows();
            query(&rows).await.map_err(not_done)
        });
        read.await
    }

    async fn claim(&self, wanted: Vec<ShardId>) -> Result<Vec<Epoch>, StoreError> {
        let (node, epoch) = (self.node, self.epoch);
        let claims = wanted.clone();
        let claimed = self.session().await?.call(move |backend| async move {
            let claimed: Vec<(ShardId, ShardPlace)> = {
                let state = backend.database.state();
                if state.done.owner != Some(node) || state.done.owners != epoch {
                    return Ok(None);
                }
                let next = |shard: &ShardId| {
                    let (epoch, batches) =
                        state.done.shards.get(shard).map_or((0, 0), |place| (place.epoch, place.batches));
                    (*shard, ShardPlace { epoch: epoch + 1, batches })
                };
                claims.iter().map(next).collect()
            };
            backend.database.change(TableChange::Places(claimed.clone())).map_err(not_done)?;
            backend.database.flush().await;
            Ok(Some(claimed))
        });
        let Some(claimed) = claimed.await.map_err(|failed| failed.error)? else {
            return Err(StoreError::Unusable("another node has taken over".to_owned()));
        };
        Ok(claimed.into_iter().map(|(shard, place)| self.lanes.claimed(shard, place)).collect())
    }

    async fn release(&self, shards: Vec<(ShardId, Epoch)>) -> Result<(), StoreError> {
        let owned = shards
            .into_iter()
            .filter_map(|(shard, epoch)| Some((shard, self.lanes.stored_epoch(shard, epoch)?)));
        let owned: Vec<(ShardId, i64)> = owned.collect();
        let released = owned.clone();
        let done = self.session().await?.call(move |backend| async move {
            let places: Vec<_> = {
                let state = backend.database.state();
                let next = |(shard, epoch): &(ShardId, i64)| {
                    let place = state.done.shards.get(shard).filter(|place| place.epoch == *epoch)?;
                    Some((*shard, ShardPlace { epoch: epoch + 1, ..*place }))
                };
                released.iter().filter_map(next).collect()
            };
            backend.database.change(TableChange::Places(places)).map_err(not_done)?;
            backend.database.flush().await;
            Ok(())
        });
        done.await.map_err(|failed| failed.error)?;
        for (shard, _) in owned {
            self.lanes.released(shard);
        }
        Ok(())
    }
}

impl Store for SharedStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        Box::pin(self.claim(shards))
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        Box::pin(self.release(shards))
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        let is_synced = batch.durability == Durability::Synced;
        let changes = BatchChanges { writes: Arc::new(batch.writes), is_buffered: !is_synced };
        Box::pin(self.lanes.commit(shard, epoch, batch.chain, is_synced, Arc::new(changes)))
    }

    fn catalog(&self) -> StoreFuture<'_, Catalog> {
        self.read(|rows| rows.catalog())
    }

    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters> {
        self.read(move |rows| rows.counters(endpoint))
    }

    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>> {
        self.read(move |rows| rows.jobs(endpoint, after_seq, limit))
    }

    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>> {
        self.read(move |rows| rows.webhooks(endpoint))
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        self.read(move |rows| rows.input(job))
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        self.read(move |rows| rows.outcome(job))
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        self.read(move |rows| rows.attempts(job))
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        self.read(move |rows| rows.stream(job))
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        self.read(move |rows| rows.chunks(job, offset, bytes_max))
    }
}
