//! The end of one job's stream, shared by everybody who follows it.
//!
//! A follower asks the actor once and then looks here: a thousand of them cost the queue as much as one. What
//! stands here is durable, for it changes after the commits alone. The newest chunks are kept, so that followers
//! who keep up read them once from memory; whoever is further back reads the store.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::{JobRow, JobState};
use longshore_store::ChunkRow;
use tokio::sync::Notify;

/// Bytes of the newest chunks that are kept for a stream with followers.
const RECENT_BYTES_MAX: usize = 512 * 1024;
/// The same as a number of chunks: many small ones take more than their bytes.
const RECENT_CHUNKS_MAX: usize = 4_096;

/// A followed stream.
#[derive(Debug)]
pub(crate) struct StreamTail {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug)]
struct State {
    row: JobRow,
    /// The offset that the next chunk gets.
    next: u64,
    /// How many progress values there were since somebody follows.
    progress: u64,
    /// Nothing more is heard here: whoever follows asks the actor again.
    closed: bool,
    /// The newest chunks, without a gap up to `next`.
    recent: VecDeque<ChunkRow>,
    recent_bytes: usize,
}

/// Something that happened to a followed job.
#[derive(Debug)]
pub(crate) enum TailEvent {
    /// Chunks were appended.
    Chunks(Vec<ChunkRow>),
    /// The chunks so far belong to a lost attempt.
    Dropped,
    /// The job's row changed.
    Row(JobRow),
    /// There is a progress value.
    Progress,
    /// The job is gone, or nobody can say any more how it stands.
    Closed,
}

/// What a follower sees.
#[derive(Clone, Debug)]
pub(crate) struct TailSnapshot {
    pub(crate) row: JobRow,
    pub(crate) next: u64,
    pub(crate) version: TailVersion,
    pub(crate) closed: bool,
}

/// What tells one look of a job from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailVersion {
    state: JobState,
    attempt: u32,
    retries: u8,
    progress: u64,
}

impl StreamTail {
    pub(crate) fn new(row: JobRow, next: u64) -> Self {
        let state = State { row, next, progress: 0, closed: false, recent: VecDeque::new(), recent_bytes: 0 };
        Self { state: Mutex::new(state), news: Notify::new() }
    }

    /// Takes in what has become durable, and wakes whoever waits.
    pub(crate) fn publish(&self, news: TailEvent) {
        self.lock().apply(news);
        self.news.notify_waiters();
    }

    pub(crate) fn snapshot(&self) -> TailSnapshot {
        let state = self.lock();
        let row = &state.row;
        let sight = TailVersion {
            state: row.state,
            attempt: row.attempt.0,
            retries: row.retries,
            progress: state.progress,
        };
        TailSnapshot { row: row.clone(), next: state.next, version: sight, closed: state.closed }
    }

    /// Waits until something is other than `seen`.
    pub(crate) async fn changed(&self, seen: &TailSnapshot) {
        loop {
            let mut news = std::pin::pin!(self.news.notified());
            // From here on nothing is missed.
            news.as_mut().enable();
            let look = self.snapshot();
            if look.closed || (look.next, look.version) != (seen.next, seen.version) {
                return;
            }
            news.await;
        }
    }

    /// The chunks from `offset` on, of about `bytes_max`, if all of them are in memory.
    pub(crate) fn recent(&self, offset: u64, bytes_max: usize) -> Option<Vec<ChunkRow>> {
        let state = self.lock();
        let first = state.recent.front()?.offset;
        let skipped = usize::try_from(offset.checked_sub(first)?).ok()?;
        let mut bytes = 0;
        let fitting = state.recent.iter().skip(skipped).take_while(|chunk| {
            let fits = bytes < bytes_max;
            bytes += chunk.bytes.len();
            fits
        });
        Some(fitting.cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn apply(&mut self, news: TailEvent) {
        match news {
            TailEvent::Chunks(chunks) => chunks.into_iter().for_each(|chunk| self.keep(chunk)),
            TailEvent::Dropped => {
                self.recent.clear();
                self.recent_bytes = 0;
            }
            TailEvent::Row(row) => self.row = row,
            TailEvent::Progress => self.progress += 1,
            TailEvent::Closed => self.closed = true,
        }
    }

    fn keep(&mut self, chunk: ChunkRow) {
        self.next = chunk.offset.saturating_add(1);
        self.recent_bytes += chunk.bytes.len();
        self.recent.push_back(chunk);
        while self.recent_bytes > RECENT_BYTES_MAX || self.recent.len() > RECENT_CHUNKS_MAX {
            let Some(oldest) = self.recent.pop_front() else { return };
            self.recent_bytes -= oldest.bytes.len();
        }
    }
}
