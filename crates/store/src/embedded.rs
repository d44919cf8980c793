//! The store of a single server: rows in an append-only log of a local directory.
//!
//! ```text
//! commit ──► request queue ──► a writer thread: drain → check epochs → one frame ──► one sync ──► index → replies
//!                         ├──► another writer thread, while the first one syncs: the same
//!                         └──► while no sync is in flight: copy live records of the oldest segment, remove the segment
//! reads  ──► index, in memory: the place of each record ──► the file, on blocking threads
//! ```
//!
//! `format.rs` describes the files. Everything durable is in the log; opening the directory builds the index from it. A
//! log that a crash tore recovers by itself: every frame has a checksum, and the frames behind the last whole one were
//! not acknowledged. A log in which an acknowledged frame is missing is refused.

mod blob_file;
mod compaction;
mod copy;
mod dump;
mod error;
mod index;
mod log;
mod read;
mod recovery;
mod salvage;
mod scrub;
mod verify;
mod walk;
mod write;

use std::future::ready;
use std::path::Path;
use std::sync::Arc;

use longshore_model::{Attempt, Counters, EndedAttempt, EndpointNo, Epoch, JobKey, JobRow, ShardId};

use self::compaction::Compaction;
pub use self::copy::{HeldFile, HeldLog, hold_log};
pub use self::dump::dump;
use self::log::Log;
pub use self::log::end_file::UNPROVEN_END;
pub use self::log::limits::SegmentLimits;
use self::read::pool::ReadPool;
use self::recovery::data_dir::DataDir;
pub use self::recovery::data_dir::HeldDataDir;
pub use self::salvage::{Salvaged, salvage};
pub use self::scrub::{Scrub, Scrubbed};
pub use self::verify::{Verified, verify, verify_with};
pub use self::walk::Damage;
use self::write::group_commit::{Commit, GroupCommit};
use self::write::writer::{Request, WriterPool};
use crate::{
    Batch, Catalog, ChunkRow, OutcomeRow, Payload, Store, StoreError, StoreFuture, StreamRow, WebhookRow,
};

/// Encodes a job's row without its key, as records of the log have it: see the table of kinds in `format.rs`. Other stores
/// keep the same bytes.
pub fn encode_job_row(row: &JobRow) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    log::job_row::put(&mut bytes, row);
    bytes
}

/// Decodes the row of `key` that [`encode_job_row`] has encoded, or an earlier version of it.
///
/// # Errors
/// [`StoreError::Corrupt`] with what was expected, if no version up to this one writes the bytes.
pub fn decode_job_row(key: JobKey, bytes: &[u8]) -> Result<JobRow, StoreError> {
    log::job_row::decode(key, bytes).map_err(|malformed| {
        StoreError::Corrupt(format!("the row of job {} of endpoint {}: {malformed}", key.seq, key.endpoint.0))
    })
}

/// Encodes an ended attempt without its job and its number, as records of the log have it. Other stores keep the same bytes.
pub fn encode_attempt(attempt: &EndedAttempt) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    log::attempt_row::put(&mut bytes, attempt);
    bytes
}

/// Decodes the attempt `n` of a job that [`encode_attempt`] has encoded.
///
/// # Errors
/// [`StoreError::Corrupt`] with what was expected, if no version up to this one writes the bytes.
pub fn decode_attempt(job: JobKey, n: Attempt, bytes: &[u8]) -> Result<EndedAttempt, StoreError> {
    log::attempt_row::decode(n, bytes).map_err(|malformed| {
        let JobKey { endpoint, seq } = job;
        StoreError::Corrupt(format!("attempt {} of job {seq} of endpoint {}: {malformed}", n.0, endpoint.0))
    })
}

/// The store of a single server. Must be used inside a Tokio runtime.
///
/// Dropping it waits until all requests are written, then unlocks the directory.
#[derive(Debug)]
pub struct EmbeddedStore {
    readers: ReadPool,
    writer: WriterPool,
}

impl EmbeddedStore {
    /// Opens the data directory `dir`, creating it if it is missing. Blocks while the log is read; large payloads are not.
    ///
    /// The directory is locked until the store is dropped.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if another store has the directory open, if it is damaged, or if a newer version or
    /// another program wrote it.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, SegmentLimits::default())
    }

    /// Opens the data directory like [`Self::open`], with other sizes of the log's segments.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(dir: &Path, limits: SegmentLimits) -> Result<Self, StoreError> {
        let data_dir = DataDir::open(dir)?;
        let copy_lock = data_dir.copy_lock()?;
        let recovered = recovery::recover(&data_dir.log(), limits).map_err(|error| data_dir.refuse(error))?;
        let log = Log::open(&data_dir.log(), limits, recovered).map_err(|error| data_dir.refuse(error))?;
        let shared = Arc::clone(log.shared());
        let group_commit = GroupCommit::new(log, &shared);
        let compaction = Compaction::new(Arc::clone(&shared), limits, copy_lock);
        let writer = WriterPool::start(data_dir, group_commit, compaction)?;
        Ok(Self { readers: ReadPool::new(shared), writer })
    }

    /// Returns a scrub of the stored files, see [`Scrub`]. `dir` must be the directory that was opened.
    pub fn scrub(&self, dir: &Path) -> Scrub {
        Scrub::new(self.readers.shared(), dir)
    }
}

impl Store for EmbeddedStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        Box::pin(self.writer.request(move |reply| Request::Claim(shards, reply)))
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.request(move |reply| Request::Release(shards, reply)))
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.request(move |reply| Request::Commit(Commit { shard, epoch, batch }, reply)))
    }

    fn catalog(&self) -> StoreFuture<'_, Catalog> {
        let (values, last_endpoint_no) = read::catalog::values(&self.readers.index());
        Box::pin(ready(read::catalog::read(&values, last_endpoint_no)))
    }

    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters> {
        Box::pin(ready(Ok(self.readers.index().counters(endpoint).unwrap_or_default())))
    }

    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>> {
        let after = JobKey { endpoint, seq: after_seq };
        Box::pin(self.readers.read(move |shared| read::jobs(shared, after, limit)))
    }

    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>> {
        Box::pin(ready(Ok(self.readers.index().hooks(endpoint))))
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        Box::pin(self.readers.read(move |shared| read::input(shared, job)))
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        Box::pin(self.readers.read(move |shared| read::outcome(shared, job)))
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        Box::pin(self.readers.read(move |shared| read::attempts(shared, job)))
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        Box::pin(ready(Ok(self.readers.index().stream(job))))
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(self.readers.read(move |shared| read::chunks(shared, job, offset, bytes_max)))
    }
}
