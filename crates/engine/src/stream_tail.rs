//! The tail of one job's stream: its durable end, shared by all followers of the job.
//!
//! A follower sends one request to the actor and then reads the tail, so that a thousand followers cost the actor as much as
//! one. The tail changes only after commits, so its content is durable. It has the newest chunks in memory. A follower that
//! is further behind reads the store.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longshore_model::{JobRow, JobState};
use longshore_store::ChunkRow;
use tokio::sync::Notify;

/// Bytes of chunks in one tail. A single larger chunk is not stored.
const RECENT_BYTES_MAX: usize = 512 * 1024;
/// Number of chunks in one tail: small chunks take more memory than their bytes.
const RECENT_CHUNKS_MAX: usize = 4_096;

/// The tail of a followed stream. One per stream with followers, which own it; volatile.
#[derive(Debug)]
pub(crate) struct StreamTail {
    state: Mutex<State>,
    /// Wakes the followers after every event.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    row: JobRow,
    /// The offset that the next chunk gets.
    next: u64,
    /// The number of progress values since the tail was created.
    progress: u64,
    /// The tail gets no further event: its followers request another tail from the actor.
    closed: bool,
    /// The newest chunks, ascending and without a gap up to `next`.
    recent: VecDeque<ChunkRow>,
    /// The length of the chunks in `recent`, in bytes.
    recent_bytes: usize,
}

/// A durable change of a followed job.
#[derive(Debug)]
pub(crate) enum TailEvent {
    /// Chunks were appended, ascending by offset.
    Chunks(Vec<ChunkRow>),
    /// All chunks were dropped: they belong to a lost attempt.
    Dropped,
    /// The job's row has changed.
    Row(JobRow),
    /// The worker reported a progress value.
    Progress,
    /// The job was deleted, the queue was reloaded or the server stops.
    Closed,
}

/// A copy of a tail's state.
#[derive(Clone, Debug)]
pub(crate) struct TailSnapshot {
    pub(crate) row: JobRow,
    /// The offset that the next chunk gets.
    pub(crate) next: u64,
    pub(crate) version: TailVersion,
    /// The tail gets no further event.
    pub(crate) closed: bool,
}

/// The parts of a job's state that a follower reports. They are equal if the follower has nothing new to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailVersion {
    state: JobState,
    attempt: u32,
    retries: u8,
    progress: u64,
}

impl StreamTail {
    /// Returns the tail of a stream without chunks in memory, whose next chunk gets the offset `next`.
    pub(crate) fn new(row: JobRow, next: u64) -> Self {
        let state = State { row, next, progress: 0, closed: false, recent: VecDeque::new(), recent_bytes: 0 };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Applies a durable change, and wakes the followers.
    pub(crate) fn publish(&self, event: TailEvent) {
        self.lock().apply(event);
        self.changed.notify_waiters();
    }

    /// Returns a copy of the state, without the chunks.
    pub(crate) fn snapshot(&self) -> TailSnapshot {
        let state = self.lock();
        let row = &state.row;
        let version = TailVersion {
            state: row.state,
            attempt: row.attempt.0,
            retries: row.retries,
            progress: state.progress,
        };
        TailSnapshot { row: row.clone(), next: state.next, version, closed: state.closed }
    }

    /// Waits until the next offset or the version differs from `seen`, or the tail is closed.
    pub(crate) async fn changed(&self, seen: &TailSnapshot) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Enabled before the state is read, so that no event between the two is missed.
            changed.as_mut().enable();
            let present = self.snapshot();
            if present.closed || (present.next, present.version) != (seen.next, seen.version) {
                return;
            }
            changed.await;
        }
    }

    /// Returns the chunks from `offset` on, until they have at least `bytes_max` bytes. `None` if no chunk is in memory, or if
    /// `offset` is below the first one there.
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
    fn apply(&mut self, event: TailEvent) {
        match event {
            TailEvent::Chunks(chunks) => chunks.into_iter().for_each(|chunk| self.push(chunk)),
            TailEvent::Dropped => {
                self.recent.clear();
                self.recent_bytes = 0;
            }
            TailEvent::Row(row) => self.row = row,
            TailEvent::Progress => self.progress += 1,
            TailEvent::Closed => self.closed = true,
        }
    }

    /// Adds a chunk, and removes the oldest ones until both limits hold.
    fn push(&mut self, chunk: ChunkRow) {
        self.next = chunk.offset.saturating_add(1);
        self.recent_bytes += chunk.bytes.len();
        self.recent.push_back(chunk);
        while self.recent_bytes > RECENT_BYTES_MAX || self.recent.len() > RECENT_CHUNKS_MAX {
            let Some(oldest) = self.recent.pop_front() else { return };
            self.recent_bytes -= oldest.bytes.len();
        }
    }
}
