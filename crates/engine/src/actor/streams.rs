//! The chunk log's bookkeeping: where each stream stands, and who waits for its next chunk.
//!
//! The chunks themselves are in the store. The queue only lends the right to append.

use std::collections::{BTreeMap, HashMap};

use longshore_model::JobKey;
use longshore_store::StreamRow;
use tokio::sync::oneshot;

/// The streams of one endpoint.
#[derive(Default)]
pub(crate) struct Streams {
    known: HashMap<JobKey, StreamRow>,
    /// Jobs up to this number were there when the queue was loaded: the store may know streams of theirs that
    /// are not in `known`. Later jobs have none before their first chunk.
    cold_until_seq: u64,
    watches: BTreeMap<JobKey, Vec<oneshot::Sender<()>>>,
}

impl Streams {
    pub(crate) fn new(cold_until_seq: u64) -> Self {
        Self { cold_until_seq, ..Self::default() }
    }

    /// Where the stream stands; none if only the store can say.
    pub(crate) fn get(&self, job: JobKey) -> Option<StreamRow> {
        let known = self.known.get(&job).copied();
        known.or_else(|| (job.seq > self.cold_until_seq).then(StreamRow::default))
    }

    /// Takes in what the store says, unless something newer is known.
    pub(crate) fn warm(&mut self, job: JobKey, stream: StreamRow) {
        self.known.entry(job).or_insert(stream);
    }

    pub(crate) fn set(&mut self, job: JobKey, stream: StreamRow) {
        self.known.insert(job, stream);
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

    /// Everybody who waits looks again, now.
    pub(crate) fn dismiss(&mut self) {
        self.watches.clear();
    }

    /// Forgets everything with the machine that decided it. Everybody who waits looks again.
    pub(crate) fn reload(&mut self, cold_until_seq: u64) {
        *self = Self::new(cold_until_seq);
    }
}
