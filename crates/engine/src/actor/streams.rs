//! The streams of one endpoint: the row of each, the waiters for its next chunk, and the tail that its followers share.
//!
//! The chunks are in the store. The queue decides whether a worker may append.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use longshore_model::{JobKey, JobRow};
use longshore_store::{ChunkRow, StreamRow};
use tokio::sync::oneshot;

use crate::stream_tail::{StreamTail, TailEvent};

/// The streams of one endpoint. Volatile: rows of streams are read from the store again after a reload.
#[derive(Default)]
pub(crate) struct StreamTable {
    known: HashMap<JobKey, StreamState>,
    /// Jobs up to this sequence number existed when the queue was loaded: the store may have streams of them that are not
    /// in `known`. Later jobs have no stream before their first chunk.
    cold_until_seq: u64,
    waiters: BTreeMap<JobKey, Vec<oneshot::Sender<()>>>,
    /// The tails of followed streams, which are owned by their followers.
    tails: BTreeMap<JobKey, Weak<StreamTail>>,
}

/// The state of one stream in memory.
#[derive(Clone, Copy)]
struct StreamState {
    row: StreamRow,
    /// The length of all its chunks, in bytes; `None` until the stored chunks were counted.
    bytes: Option<u64>,
}

impl StreamTable {
    /// Returns an empty table for a queue whose loaded jobs have sequence numbers up to `cold_until_seq`.
    pub(crate) fn new(cold_until_seq: u64) -> Self {
        Self { cold_until_seq, ..Self::default() }
    }

    /// The stream's row; `None` if it has to be read from the store.
    pub(crate) fn get(&self, job: JobKey) -> Option<StreamRow> {
        let known = self.known.get(&job).map(|known| known.row);
        known.or_else(|| self.is_new(job).then(StreamRow::default))
    }

    /// The length of all chunks of the stream, in bytes; `None` if the stored chunks have to be counted.
    pub(crate) fn bytes(&self, job: JobKey) -> Option<u64> {
        match self.known.get(&job) {
            Some(known) => known.bytes,
            None => self.is_new(job).then_some(0),
        }
    }

    fn is_new(&self, job: JobKey) -> bool {
        job.seq > self.cold_until_seq
    }

    /// Adds a row that was read from the store, and the length of its chunks in bytes if they were counted. A value that the
    /// table has already is newer and stays.
    pub(crate) fn warm(&mut self, job: JobKey, row: StreamRow, bytes: Option<u64>) {
        let known = self.known.entry(job).or_insert(StreamState { row, bytes });
        known.bytes = known.bytes.or(bytes);
    }

    /// Replaces the stream's row.
    pub(crate) fn set(&mut self, job: JobKey, row: StreamRow) {
        let bytes = self.bytes(job);
        self.known.insert(job, StreamState { row, bytes });
    }

    /// Adds the length of new chunks.
    pub(crate) fn grow(&mut self, job: JobKey, chunks: &[ChunkRow]) {
        let grown: u64 = chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();
        let (row, bytes) = (self.get(job).unwrap_or_default(), self.bytes(job));
        self.known.insert(job, StreamState { row, bytes: bytes.map(|bytes| bytes + grown) });
    }

    /// Sets the length of a stream whose chunks are deleted to 0. Later chunks get larger offsets.
    pub(crate) fn dropped(&mut self, job: JobKey) {
        if let Some(known) = self.known.get_mut(&job) {
            known.bytes = Some(0);
        }
    }

    /// Removes the stream of a deleted job. Waiters and the tail stay.
    pub(crate) fn remove(&mut self, job: JobKey) {
        self.known.remove(&job);
    }

    /// Whether the store can hold chunks of the job.
    pub(crate) fn may_have_chunks(&self, job: JobKey) -> bool {
        self.get(job).is_none_or(|stream| stream.next > 0)
    }

    /// Registers a waiter for the stream's next chunk or the job's end. Removes the job's closed waiters.
    pub(crate) fn add_waiter(&mut self, job: JobKey, waiter: oneshot::Sender<()>) {
        let waiters = self.waiters.entry(job).or_default();
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(waiter);
    }

    /// Removes and returns the waiters for the stream's next chunk.
    pub(crate) fn take_waiters(&mut self, job: JobKey) -> Vec<oneshot::Sender<()>> {
        self.waiters.remove(&job).unwrap_or_default()
    }

    /// The tail of a stream whose next chunk gets the offset `next`, for another follower.
    pub(crate) fn follow(&mut self, row: JobRow, next: u64) -> Arc<StreamTail> {
        let key = row.key;
        if let Some(tail) = self.tail(key) {
            return tail;
        }
        let tail = Arc::new(StreamTail::new(row, next));
        self.tails.insert(key, Arc::downgrade(&tail));
        tail
    }

    /// The tail of a stream; `None` if it has no follower.
    pub(crate) fn tail(&mut self, job: JobKey) -> Option<Arc<StreamTail>> {
        let tail = self.tails.get(&job)?.upgrade();
        if tail.is_none() {
            self.tails.remove(&job);
        }
        tail
    }

    /// Drops all waiters and closes all tails: their requests then read the job again.
    pub(crate) fn drop_waiters(&mut self) {
        self.waiters.clear();
        for tail in std::mem::take(&mut self.tails).into_values().filter_map(|tail| tail.upgrade()) {
            tail.publish(TailEvent::Closed);
        }
    }

    /// Empties the table when the queue is reloaded, drops all waiters and closes all tails.
    pub(crate) fn reload(&mut self, cold_until_seq: u64) {
        self.drop_waiters();
        *self = Self::new(cold_until_seq);
    }
}
