//! Where rows are kept.
//!
//! [`Store`] is what the engine needs of a database: claim the shards, load an endpoint's rows, commit a batch
//! all or nothing, and read payloads. The store knows rows; it does not know what a queue does with them.

mod batch;
mod blob;
mod chains;
mod embedded;
mod memory;

use std::future::Future;
use std::pin::Pin;

use longshore_model::{Counters, EndpointNo, Epoch, JobKey, JobRow, ShardId};

pub use batch::{Batch, Catalog, ChunkRow, JsonRow, OutcomeRow, Payload, StreamRow, WebhookRow, Write};
pub use blob::{BlobCheck, BlobRef};
pub use chains::CommitChains;
pub use embedded::{
    Damage, EmbeddedStore, HeldFile, HeldLog, Salvaged, Scrub, Scrubbed, SegmentLimits, Verified, dump,
    hold_log, salvage, verify, verify_with,
};
pub use memory::MemoryStore;

/// What a [`Store`] method returns: boxed, so that the engine can hold any store behind one pointer.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a store could not do what was asked. After any of these nothing of the batch is kept. (If
/// the disk fails so badly that a half-done commit cannot even be undone, a crash right then may keep all of it.)
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Somebody else has claimed the shard since.
    #[error("shard {} has a newer owner (our epoch {}, current {})", .shard.0, .ours.0, .current.0)]
    StaleEpoch {
        /// The shard of the batch.
        shard: ShardId,
        /// The epoch that the batch was committed under.
        ours: Epoch,
        /// The epoch of the present owner.
        current: Epoch,
    },
    /// The disk is full. What is on it stays readable.
    #[error("the disk is full: {0}")]
    Full(String),
    /// Reading or writing failed.
    #[error("the store cannot read or write: {0}")]
    Io(String),
    /// A row says something that no version of this program writes.
    #[error("a stored row makes no sense: {0}")]
    Corrupt(String),
    /// The data folder cannot be used; the text says why and what to do.
    #[error("{0}")]
    Unusable(String),
}

/// A place for rows. Cheap to share; every method may be called from many tasks at once.
pub trait Store: Send + Sync + 'static {
    /// Takes over the shards: their epochs grow by one, and commits under older ones are refused from now on.
    /// Answers the new epochs in the order of `shards`.
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>>;

    /// Lets the shards go. A later commit under these epochs is refused.
    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()>;

    /// Writes a batch, all or nothing, in order. When this returns `Ok`, a crash cannot undo the batch (with
    /// [`longshore_model::Durability::Buffered`]: a killed process cannot; a power cut may within 100 ms).
    ///
    /// Several batches of a shard may be on their way. They take effect in the order in which this was called. Where
    /// one fails, those of its chain that come after it fail too: they rest on it. Whoever has heard of the failure,
    /// and has nothing on its way any more, goes on with a larger chain. See [`CommitChains`].
    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()>;

    /// Every endpoint, template, key, small record and setting, in the order of creation.
    fn catalog(&self) -> StoreFuture<'_, Catalog>;

    /// An endpoint's counters; the default where none were written yet.
    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters>;

    /// An endpoint's jobs with a sequence number over `after_seq`, ascending, at most `limit`.
    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>>;

    /// The webhook calls that an endpoint owes, ascending by job.
    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>>;

    /// A job's input.
    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>>;

    /// A job's output and error.
    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>>;

    /// Where a job's stream stands.
    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>>;

    /// A job's chunks from `offset` on, ascending; stops after the chunk that brings the answer to `bytes_max`,
    /// and answers at least one chunk where there is one.
    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>>;
}
