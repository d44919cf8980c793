//! Rows in one file of a local folder: an `SQLite` database with a write-ahead log.
//!
//! ```text
//! commit ──► channel ──► writer thread: drain → check epochs → one transaction → one sync → answers
//!                             └─► checkpoint thread: log → database file, in the background
//! reads  ──► a few read-only connections on blocking threads, each sees all that was acknowledged
//! ```
//!
//! What is in the file is described in `schema.rs`. A log that a crash tore recovers by itself when the folder is
//! opened: every acknowledged commit has a checksum and was synced, what follows the last one is dropped.

mod ahead;
mod apply;
mod checkpoint;
mod column;
mod committer;
mod doubt;
mod error;
mod job_row;
mod open;
mod read;
mod readers;
mod schema;
mod writer;

use std::path::Path;

use longshore_model::{Counters, EndpointNo, Epoch, JobKey, JobRow, ShardId};

pub use self::checkpoint::LogLimits;
use self::committer::Commit;
use self::open::Folder;
use self::readers::Readers;
use self::writer::{Request, Writer};
use crate::{
    Batch, Catalog, ChunkRow, HookRow, OutcomeRow, Payload, Store, StoreError, StoreFuture, StreamRow,
};

/// The store of a single server. Must be used inside a Tokio runtime.
///
/// Dropping it waits until everything that was handed over is written, then frees the folder.
#[derive(Debug)]
pub struct EmbeddedStore {
    // Dropped first: the writer is then the last to close the file, which tidies the log away.
    readers: Readers,
    writer: Writer,
}

impl EmbeddedStore {
    /// Opens the folder, creating it if need be. Blocks; a folder of any size opens in milliseconds.
    ///
    /// The folder belongs to this store until it is dropped: a second one gets [`StoreError::Unusable`], and so
    /// does whoever opens a folder that a newer version or another program wrote.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, LogLimits::default())
    }

    /// As [`Self::open`], with other limits of the log. Any will do: they cost time, not safety.
    pub fn open_with(dir: &Path, log: LogLimits) -> Result<Self, StoreError> {
        let folder = Folder::open(dir)?;
        let readers = Readers::new(folder.database.clone());
        let writer = Writer::start(folder, log)?;
        Ok(Self { readers, writer })
    }
}

impl Store for EmbeddedStore {
    fn claim(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        Box::pin(self.writer.ask(move |reply| Request::Claim(shards, reply)))
    }

    fn release(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(move |reply| Request::Release(shards, reply)))
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        Box::pin(self.writer.ask(move |reply| Request::Commit(Commit { shard, epoch, batch }, reply)))
    }

    fn catalog(&self) -> StoreFuture<'_, Catalog> {
        Box::pin(self.readers.read(read::catalog))
    }

    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters> {
        Box::pin(self.readers.read(move |db| read::counters(db, endpoint)))
    }

    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>> {
        Box::pin(self.readers.read(move |db| read::jobs(db, endpoint, after_seq, limit)))
    }

    fn hooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<HookRow>> {
        Box::pin(self.readers.read(move |db| read::hooks(db, endpoint)))
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        Box::pin(self.readers.read(move |db| read::input(db, job)))
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        Box::pin(self.readers.read(move |db| read::outcome(db, job)))
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        Box::pin(self.readers.read(move |db| read::stream(db, job)))
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(self.readers.read(move |db| read::chunks(db, job, offset, bytes_max)))
    }
}
