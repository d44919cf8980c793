//! Rows in an append-only log of a local folder.
//!
//! ```text
//! commit ──► inbox ──► a writer thread: drain → check epochs → one frame ──► one sync ──► index → answers
//!                 └──► another one, while the first waits for its sync: the same
//!                 └──► in the quiet: what the oldest segment still has goes to the end, the segment goes
//! reads  ──► index, in memory: what is where ──► the file, on blocking threads
//! ```
//!
//! What is in the folder is described in `format.rs`. The log is all there is: the index is made from it when the folder
//! is opened. A log that a crash tore recovers by itself: every frame has a checksum, what follows the last whole one
//! was acknowledged to nobody. Where something acknowledged is missing the log is refused.

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

use longshore_model::{Counters, EndpointNo, Epoch, JobKey, JobRow, ShardId};

use self::compaction::Compaction;
pub use self::copy::{HeldFile, HeldLog, hold_log};
pub use self::dump::dump;
use self::log::Log;
pub use self::log::limits::SegmentLimits;
use self::read::pool::ReadPool;
use self::recovery::data_dir::DataDir;
pub use self::salvage::{Salvaged, salvage};
pub use self::scrub::{Scrub, Scrubbed};
pub use self::verify::{Verified, verify, verify_with};
pub use self::walk::Damage;
use self::write::group_commit::{Commit, GroupCommit};
use self::write::writer::{Request, WriterPool};
use crate::{
    Batch, Catalog, ChunkRow, OutcomeRow, Payload, Store, StoreError, StoreFuture, StreamRow, WebhookRow,
};

/// The store of a single server. Must be used inside a Tokio runtime.
///
/// Dropping it waits until everything that was handed over is written, then frees the folder.
#[derive(Debug)]
pub struct EmbeddedStore {
    readers: ReadPool,
    writer: WriterPool,
}

impl EmbeddedStore {
    /// Opens the folder, creating it if need be. Blocks: the log is read, but for large payloads.
    ///
    /// The folder belongs to this store until it is dropped: a second one gets [`StoreError::Unusable`], and so
    /// does whoever opens a folder that is damaged, or that a newer version or another program wrote.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, SegmentLimits::default())
    }

    /// As [`Self::open`], with a log that is cut in another way.
    pub fn open_with(dir: &Path, limits: SegmentLimits) -> Result<Self, StoreError> {
        let folder = DataDir::open(dir)?;
        let hold = folder.copy_lock()?;
        let recovered = recovery::recover(&folder.log(), limits).map_err(|error| folder.refuse(error))?;
        let log = Log::open(&folder.log(), limits, recovered).map_err(|error| folder.refuse(error))?;
        let shared = Arc::clone(log.shared());
        let committer = GroupCommit::new(log, &shared);
        let reclaim = Compaction::new(Arc::clone(&shared), limits, hold);
        let writer = WriterPool::start(folder, committer, reclaim)?;
        Ok(Self { readers: ReadPool::new(shared), writer })
    }

    /// Reads what lies in this folder, which is the one that was opened, in the background of everything else.
    pub fn scrub(&self, dir: &Path) -> Scrub {
        Scrub::new(self.readers.shared(), dir)
    }
}

impl Store for EmbeddedStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        Box::pin(self.writer.ask(move |reply| Request::Claim(shards, reply)))
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(move |reply| Request::Release(shards, reply)))
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(move |reply| Request::Commit(Commit { shard, epoch, batch }, reply)))
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

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        Box::pin(ready(Ok(self.readers.index().stream(job))))
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(self.readers.read(move |shared| read::chunks(shared, job, offset, bytes_max)))
    }
}
