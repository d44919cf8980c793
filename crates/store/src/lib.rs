//! Durable storage of rows.
//!
//! [`Store`] is the engine's interface to a database: claim shards, load an endpoint's rows, commit a batch
//! all or nothing, and read payloads. The store reads and writes rows; the rules of queues are in `longshore-queue`.

mod batch;
mod blob;
mod chains;
mod embedded;
mod memory;

use std::future::Future;
use std::pin::Pin;

use longshore_model::{Counters, EndedAttempt, EndpointNo, Epoch, JobKey, JobRow, ShardId};

pub use batch::{
    Batch, Catalog, ChunkRow, JsonRow, LogLine, OutcomeRow, Payload, StreamRow, WebhookRow, Write,
};
pub use blob::{BlobCheck, BlobRef};
pub use chains::CommitChains;
pub use embedded::{
    Damage, EmbeddedStore, HeldDataDir, HeldFile, HeldLog, Salvaged, Scrub, Scrubbed, SegmentLimits,
    UNPROVEN_END, Verified, decode_attempt, decode_job_row, dump, encode_attempt, encode_job_row, hold_log,
    salvage, verify, verify_with,
};
pub use memory::MemoryStore;

/// The setting of an installation with the place of its large payloads, if that is outside of its computer.
pub const PAYLOADS_AT: &str = "payloads_at";

/// The future that a [`Store`] method returns. It is boxed, so that the engine can use any store as `dyn Store`.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why a [`Store`] call failed. Nothing of the batch is applied. Only if the disk fails while a failed commit is undone
/// may a crash keep all of the batch.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Another owner has claimed the shard. Stop serving the shard; a retry cannot succeed.
    #[error("shard {} has a newer owner (our epoch {}, current {})", .shard.0, .ours.0, .current.0)]
    StaleEpoch {
        /// The shard of the batch.
        shard: ShardId,
        /// The epoch that the batch was committed under.
        ours: Epoch,
        /// The epoch of the current owner.
        current: Epoch,
    },
    /// The disk is full. Reads still work; retry when there is free space.
    #[error("the disk is full: {0}")]
    Full(String),
    /// An operation on a file failed, or the writer threads have stopped. The text names the cause.
    #[error("the store cannot read or write: {0}")]
    Io(String),
    /// The log has bytes that no version of this program writes. The text names the file and the byte.
    #[error("corrupt row in the store: {0}")]
    Corrupt(String),
    /// The data directory cannot be used. The text names the cause and what to do.
    #[error("{0}")]
    Unusable(String),
}

/// A store that keeps lines of logs beside the rows.
pub trait CommitWithLine: Send + Sync {
    /// As [`Store::commit`], with a line of a log: both are stored, or neither is. Fails if the log has a line with this number.
    fn commit_with_line(
        &self,
        shard: ShardId,
        epoch: Epoch,
        batch: Batch,
        line: LogLine,
    ) -> StoreFuture<'_, ()>;
}

/// A database of rows. One value serves the whole process; every method may be called from many tasks concurrently.
///
/// Every method fails with [`StoreError::Io`] or [`StoreError::Corrupt`] if a file cannot be read or written.
pub trait Store: Send + Sync + 'static {
    /// Takes over the shards: raises the epoch of each by one, durably. Commits under older epochs fail from then on with
    /// [`StoreError::StaleEpoch`]. Returns the new epochs in the order of `shards`.
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>>;

    /// Gives up the shards that are still owned under these epochs. A later commit under one of the epochs fails with
    /// [`StoreError::StaleEpoch`].
    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()>;

    /// Writes a batch, all or nothing, in order. `Ok` means that a crash cannot undo the batch. With
    /// [`longshore_model::Durability::Buffered`] the death of the process cannot; a power cut within 100 ms may.
    ///
    /// Several batches of a shard may be in flight. They take effect in the order of the calls. A batch depends on the
    /// earlier batches of its chain: when one fails, all later ones of that chain fail with the same error. A sender
    /// that has received the failure, and has no batch in flight, starts a larger chain. See [`CommitChains`].
    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()>;

    /// The same store, if it keeps lines of logs beside the rows. `None`: logs are files.
    fn with_log_lines(&self) -> Option<&dyn CommitWithLine> {
        None
    }

    /// Returns every endpoint, template, key, JSON row and setting, each kind in the order of creation.
    fn catalog(&self) -> StoreFuture<'_, Catalog>;

    /// Returns an endpoint's counters; all are 0 if none were written.
    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters>;

    /// Returns an endpoint's jobs whose sequence number is larger than `after_seq`, ascending, at most `limit`.
    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>>;

    /// Returns an endpoint's pending webhook calls, ascending by job.
    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>>;

    /// Returns a job's input; `None` if none is stored.
    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>>;

    /// Returns a job's output and error; `None` if neither is stored.
    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>>;

    /// Returns a job's ended attempts, ascending by number.
    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>>;

    /// Returns the offsets of a job's stream; `None` if none are stored.
    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>>;

    /// Returns a job's chunks from `offset` on, ascending. Stops after the chunk with which the result has `bytes_max`
    /// bytes or more, so at least one chunk is returned if one is stored.
    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>>;
}
