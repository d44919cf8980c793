//! The chunk log's bookkeeping: where each stream stands, who waits for its next chunk, and who follows it.
//!
//! The chunks themselves are in the store. The queue only lends the right to append.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use longshore_model::{JobKey, JobRow};
use longshore_store::{ChunkRow, StreamRow};
use tokio::sync::oneshot;

use crate::stream_tail::{StreamTail, TailEvent};

/// The streams of one endpoint.
#[derive(Default)]
pub(crate) struct StreamTable {
    known: HashMap<JobKey, StreamState>,
    /// Jobs up to this number were there when the queue was loaded: the store may know streams of theirs that
    /// are not in `known`. Later jobs have none before their first chunk.
    cold_until_seq: u64,
    watches: BTreeMap<JobKey, Vec<oneshot::Sender<()>>>,
    /// The tails of followed streams. Those who follow hold them.
    tails: BTreeMap<JobKey, Weak<StreamTail>>,
}

/// What is known of a stream.
#[derive(Clone, Copy)]
struct StreamState {
    row: StreamRow,
    /// The length of its chunks, once somebody has counted.
    bytes: Option<u64>,
}

impl StreamTable {
    pub(crate) fn new(cold_until_seq: u64) -> Self {
        Self { cold_until_seq, ..Self::default() }
    }

    /// Where the stream stands; none if only the store can say.
    pub(crate) fn get(&self, job: JobKey) -> Option<StreamRow> {
        let known = self.known.get(&job).map(|known| known.row);
        known.or_else(|| self.is_new(job).then(StreamRow::default))
    }

    /// How long its chunks are together; none if only the store can say.
    pub(crate) fn bytes(&self, job: JobKey) -> Option<u64> {
        match self.known.get(&job) {
            Some(known) => known.bytes,
            None => self.is_new(job).then_some(0),
        }
    }

    fn is_new(&self, job: JobKey) -> bool {
        job.seq > self.cold_until_seq
    }

    /// Takes in what the store says, unless something newer is known.
    pub(crate) fn warm(&mut self, job: JobKey, row: StreamRow, bytes: Option<u64>) {
        let known = self.known.entry(job).or_insert(StreamState { row, bytes });
        known.bytes = known.bytes.or(bytes);
    }

    pub(crate) fn set(&mut self, job: JobKey, row: StreamRow) {
        let bytes = self.bytes(job);
        self.known.insert(job, StreamState { row, bytes });
    }

    /// Counts new chunks.
    pub(crate) fn grow(&mut self, job: JobKey, chunks: &[ChunkRow]) {
        let grown: u64 = chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();
        let (row, bytes) = (self.get(job).unwrap_or_default(), self.bytes(job));
        self.known.insert(job, StreamState { row, bytes: bytes.map(|bytes| bytes + grown) });
    }

    /// The chunks so far are gone. Offsets go on.
    pub(crate) fn dropped(&mut self, job: JobKey) {
        if let Some(known) = self.known.get_mut(&job) {
            known.bytes = Some(0);
        }
    }

    pub(crate) fn remove(&mut self, job: JobKey) {
        self.known.remove(&job);
    }

    /// Whether the store can hold chunks of the job.
    pub(crate) fn may_have_chunks(&self, job: JobKey) -> bool {
        self.get(job).is_none_or(|stream| stream.next > 0)
    }

    pub(crate) fn watch(&mut self, job: JobKey, watch: oneshot::Sender<()>) {
        let watches = self.watches.entry(job).or_default();
        watches.retain(|watch| !watch.is_closed());
        watches.push(watch);
    }

    /// Who waits for the job's next chunk.
    pub(crate) fn watchers(&mut self, job: JobKey) -> Vec<oneshot::Sender<()>> {
        self.watches.remove(&job).unwrap_or_default()
    }

    /// The tail of a stream that ends at `next`, for one more to follow it.
    pub(crate) fn follow(&mut self, row: JobRow, next: u64) -> Arc<StreamTail> {
        let key = row.key;
        if let Some(tail) = self.tail(key) {
            return tail;
        }
        let tail = Arc::new(StreamTail::new(row, next));
        self.tails.insert(key, Arc::downgrade(&tail));
        tail
    }

    /// The tail of a stream, if anybody follows it.
    pub(crate) fn tail(&mut self, job: JobKey) -> Option<Arc<StreamTail>> {
        let tail = self.tails.get(&job)?.upgrade();
        if tail.is_none() {
            self.tails.remove(&job);
        }
        tail
    }

    /// Everybody who waits looks again, now.
    pub(crate) fn drop_waiters(&mut self) {
        self.watches.clear();
        for tail in std::mem::take(&mut self.tails).into_values().filter_map(|tail| tail.upgrade()) {
            tail.publish(TailEvent::Closed);
        }
    }

    /// Forgets everything with the machine that decided it. Everybody who waits looks again.
    pub(crate) fn reload(&mut self, cold_until_seq: u64) {
        self.drop_waiters();
        *self = Self::new(cold_until_seq);
    }
}
