//! Rows on a simulated disk, with exactly the guarantees of the embedded store.
//!
//! Like the embedded store, this one has a single writer that takes all waiting changes as one group: one write,
//! one sync. Readers see a group when it is synced. `store/rows.rs` decides what survives a crash.

mod damage;
mod rows;
mod writer;

use std::sync::Arc;

use longshore_model::{Counters, EndedAttempt, EndpointNo, Epoch, JobKey, JobRow, ShardId};
use longshore_store::{
    Batch, Catalog, ChunkRow, MemoryStore, OutcomeRow, Payload, Store, StoreError, StoreFuture, StreamRow,
    WebhookRow,
};

use self::rows::Change;
use self::writer::Writer;
use crate::disk::Drive;
use crate::observation::Observation;
use crate::scheduler::Process;

pub(crate) use self::rows::{Rows, ready};

/// The rows as one server process sees them.
pub struct SimStore {
    drive: Arc<Drive>,
    rows: Arc<Rows>,
    writer: Writer,
}

impl SimStore {
    pub(crate) fn open(process: &Process, drive: Arc<Drive>, rows: Arc<Rows>) -> Self {
        let writer = Writer::start(process, Arc::clone(&drive), Arc::clone(&rows));
        Self { drive, rows, writer }
    }

    fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&MemoryStore) -> StoreFuture<'_, T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        Box::pin(async move {
            if !self.drive.read().await {
                return Err(StoreError::Io("the disk could not be read".to_owned()));
            }
            let seen = self.rows.seen();
            query(&seen).await
        })
    }
}

impl Store for SimStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        Box::pin(self.writer.ask(Change::Claim(shards)))
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        let released = self.writer.ask(Change::Release(shards));
        Box::pin(async { released.await.map(drop) })
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        let committed = self.writer.ask(Change::Commit(shard, epoch, batch));
        Box::pin(async { committed.await.map(drop) })
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
        Box::pin(async move {
            let input = self.read(move |rows| rows.input(job)).await;
            if input.is_err()
                && let Some(row) = self.rows.job(job)
            {
                self.drive.record.observe(&Observation::InputUnread(row.id.to_string()));
            }
            let Some(input) = input? else { return Ok(None) };
            self.rows.damage().input(&self.drive, &self.rows, job, input).map(Some)
        })
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        Box::pin(async move {
            let Some(outcome) = self.read(move |rows| rows.outcome(job)).await? else { return Ok(None) };
            self.rows.damage().outcome(&self.drive, &self.rows, job, outcome).map(Some)
        })
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        self.read(move |rows| rows.attempts(job))
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        self.read(move |rows| rows.stream(job))
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(async move {
            let page = self.read(move |rows| rows.chunks(job, offset, bytes_max)).await?;
            self.rows.damage().chunks(&self.drive, &self.rows, job, page)
        })
    }
}
