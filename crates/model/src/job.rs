//! A job's state and its durable row.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use serde::{Serialize, Serializer};

use crate::limits::TTL_MS_DEFAULT;
use crate::{Attempt, JobId, JobKey, Millis, Submitter, TraceContext, WorkerId};

/// The states of a job (spec, "States and transitions").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum JobState {
    // The numbers are on disk: append, never reuse.
    /// The job waits for a worker.
    InQueue = 0,
    /// A worker runs the job.
    InProgress = 1,
    /// A worker reported a result.
    Completed = 2,
    /// A worker reported an error, or workers were lost and no retry is left.
    Failed = 3,
    /// A client cancelled or purged the job.
    Cancelled = 4,
    /// The job ran longer than its execution timeout.
    TimedOut = 5,
}

impl JobState {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::InQueue, Self::InProgress, Self::Completed, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// The state's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InQueue => "IN_QUEUE",
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::TimedOut => "TIMED_OUT",
        }
    }

    /// The state with this wire name; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The state with this number on disk; `None` for an unknown number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether the state is an end: only a client retry leaves it.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::InQueue | Self::InProgress)
    }
}

// `from_number` takes a number for an index.
const _: () = {
    let mut at = 0;
    while at < JobState::ALL.len() {
        assert!(JobState::ALL[at] as usize == at);
        at += 1;
    }
};

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for JobState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What identifies repetitions of one submit: the client's key, and a fingerprint of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The `Idempotency-Key` header, at most [`crate::limits::IDEMPOTENCY_KEY_BYTES_MAX`] bytes.
    pub key: Box<str>,
    /// The first 16 bytes of the body's SHA-256.
    pub fingerprint: [u8; 16],
}

/// The durable row of one job, without payload bytes: what the store writes and what a queue is restored from.
/// One per job, keyed by [`JobKey`]. State machine: spec, "States and transitions".
///
/// A queue packs its rows: a field that few submits set needs no memory in the other rows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, a column of its own")]
pub struct JobRow {
    /// The key of the row in the store.
    pub key: JobKey,
    /// The public id, in paths and responses.
    pub id: JobId,
    /// The job's present state.
    pub state: JobState,
    /// The job never causes a worker to start.
    pub low_priority: bool,
    /// No worker has taken the job since it was submitted or retried, so no worker can have its result.
    pub never_taken: bool,
    /// The client chose the time of deletion (`/status?ttl=`), and retention does not change it.
    pub ttl_pinned: bool,
    /// The submit named a webhook.
    pub webhook: bool,
    /// The job ended, and its webhook call is not settled. The row is not deleted before.
    pub webhook_pending: bool,
    /// Automatic retries since the submit or the last client retry.
    pub retries: u8,
    /// Redeliveries since the submit or the last client retry. Up to a limit, they count as no retry.
    pub redeliveries: u8,
    /// Deliveries since the submit; 0 before the first.
    pub attempt: Attempt,
    /// The position in the queue: the lowest is taken first. Valid only in the state `InQueue`.
    pub order: i64,
    /// When the submit was accepted.
    pub created_at: Millis,
    /// When the job last entered the queue, always after [`crate::Counters::purged_until`].
    pub enqueued_at: Millis,
    /// When the present or last worker took the job; 0 while the job is queued.
    pub started_at: Millis,
    /// When the job became terminal; 0 before.
    pub finished_at: Millis,
    /// When the first chunk of the present or last attempt arrived; 0 without one.
    pub first_chunk_at: Millis,
    /// When the last client retry was accepted; 0 without one.
    pub retried_at: Millis,
    /// When the row is deleted: by the ttl before the end, by retention after.
    pub delete_at: Millis,
    /// The ttl from the submit or the client retry, in ms.
    pub ttl_ms: u32,
    /// The longest execution, in ms.
    pub execution_timeout_ms: u32,
    /// Size of the stored input, in bytes.
    pub input_bytes: u32,
    /// The present or last worker; `None` before the first delivery.
    pub worker: Option<WorkerId>,
    /// The type of that worker's first GPU when it took the job; `None` if it had none, or an older version stored the row.
    pub gpu: Option<Arc<str>>,
    /// When progress values of the present or last attempt arrived, each in ms from `started_at` on: the first
    /// [`PROGRESS_TIMES_MAX`](crate::limits::PROGRESS_TIMES_MAX). Stored with the end of the job; `None` without one.
    pub progress: Option<Box<[u32]>>,
    /// The `Idempotency-Key` of the submit; `None` without one.
    pub idempotency: Option<Box<Idempotency>>,
    /// The key that submitted the job, and its owner.
    pub submitter: Submitter,
    /// The client's trace that the job is part of; `None` if the submit named none, or traces are off.
    pub trace: Option<Box<TraceContext>>,
    /// Stored fields that this version does not know; they are stored again unchanged.
    pub carried: Option<Box<[u8]>>,
}

impl JobRow {
    /// Returns the row of a job as submitted at `created_at`: queued, never taken, with the default ttl and an execution
    /// timeout of 600 000 ms, no input, and every optional field empty.
    ///
    /// The other rows start from this one (`JobRow { state, ..JobRow::queued(key, id, at) }`). A new field gets its value
    /// here: the value that it has in a row which a version without the field wrote.
    pub fn queued(key: JobKey, id: JobId, created_at: Millis) -> Self {
        Self {
            key,
            id,
            state: JobState::InQueue,
            low_priority: false,
            never_taken: true,
            ttl_pinned: false,
            webhook: false,
            webhook_pending: false,
            retries: 0,
            redeliveries: 0,
            attempt: Attempt(0),
            order: key.seq as i64,
            created_at,
            enqueued_at: created_at,
            started_at: Millis(0),
            finished_at: Millis(0),
            first_chunk_at: Millis(0),
            retried_at: Millis(0),
            delete_at: created_at + TTL_MS_DEFAULT,
            ttl_ms: TTL_MS_DEFAULT as u32,
            execution_timeout_ms: 600_000,
            input_bytes: 0,
            worker: None,
            gpu: None,
            progress: None,
            idempotency: None,
            submitter: Submitter::default(),
            trace: None,
            carried: None,
        }
    }

    /// Whether a worker took the job since it last entered the queue.
    pub fn ran(&self) -> bool {
        self.started_at.0 > 0
    }

    /// Time in the queue before the present or last attempt, in ms; 0 if the job did not run.
    pub fn delay_ms(&self) -> u64 {
        self.started_at.since(self.enqueued_at)
    }

    /// Whether the job waited for its present or last attempt at this time.
    pub fn was_waiting_at(&self, at: Millis) -> bool {
        (self.enqueued_at..=self.started_at).contains(&at)
    }

    /// Execution time in ms: until `now` while running, in total when terminal, 0 if the job did not run.
    pub fn execution_ms(&self, now: Millis) -> u64 {
        match self.state {
            _ if !self.ran() => 0,
            JobState::InProgress => now.since(self.started_at),
            _ => self.finished_at.since(self.started_at),
        }
    }
}
