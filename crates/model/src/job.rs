//! A job's state and the durable facts about it.

use alloc::boxed::Box;
use core::fmt;

use serde::{Serialize, Serializer};

use crate::{Attempt, JobId, JobKey, Millis, Submitter, WorkerId};

/// The states of a job (spec, "States and transitions").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum JobState {
    // The numbers are on disk: append, never reuse.
    /// Waits for a worker.
    InQueue = 0,
    /// A worker holds it.
    InProgress = 1,
    /// A worker reported a result.
    Completed = 2,
    /// A worker reported an error, or too many workers were lost with it.
    Failed = 3,
    /// A client cancelled or purged it.
    Cancelled = 4,
    /// It ran longer than its execution timeout.
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

    /// The state with this wire name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The state with this number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Whether nothing but an explicit retry can change the job any more.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::InQueue | Self::InProgress)
    }
}

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

/// The client's promise that two submits are the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The `Idempotency-Key` header, at most [`crate::limits::IDEMPOTENCY_KEY_BYTES_MAX`] bytes.
    pub key: Box<str>,
    /// The first 16 bytes of the body's SHA-256.
    pub fingerprint: [u8; 16],
}

/// The durable facts of one job: exactly what its row holds. Payload bytes are elsewhere.
///
/// A queue keeps its rows packed: a field that a submit does not always set costs a waiting job nothing there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, a column of its own")]
pub struct JobRow {
    /// Where the row lives.
    pub key: JobKey,
    /// The public id.
    pub id: JobId,
    /// Where the job is in its life.
    pub state: JobState,
    /// The job never causes a worker to start.
    pub low_priority: bool,
    /// No worker has taken the job since it was submitted or retried: no result can be its own yet.
    pub never_taken: bool,
    /// The client chose the time of deletion (`/status?ttl=`): retention does not move it.
    pub ttl_pinned: bool,
    /// The submit named a webhook.
    pub webhook: bool,
    /// Its call is owed: the job ended and the receiver has not accepted yet. Keeps the row from being deleted.
    pub webhook_pending: bool,
    /// Automatic re-dispatches after a lost worker, since submit or retry.
    pub retries: u8,
    /// Deliveries that no worker confirmed, since submit or retry; they count as no retry at first.
    pub redeliveries: u8,
    /// How often a worker took it, ever.
    pub attempt: Attempt,
    /// The place in the queue: lower goes first. Meaningful while `InQueue`.
    pub order: i64,
    /// When it was accepted.
    pub created_at: Millis,
    /// When it last entered the queue, always after [`crate::Counters::purged_until`].
    pub enqueued_at: Millis,
    /// When the present (or last) worker took it; 0 while it waits.
    pub started_at: Millis,
    /// When it became terminal; 0 before.
    pub finished_at: Millis,
    /// When it is deleted: by ttl while it lives, by retention when it is terminal.
    pub delete_at: Millis,
    /// The span its ttl grants from submit or retry.
    pub ttl_ms: u32,
    /// The longest it may run.
    pub execution_timeout_ms: u32,
    /// Size of the stored input, in bytes.
    pub input_bytes: u32,
    /// The worker that holds it, or held it last.
    pub worker: Option<WorkerId>,
    /// Set when the submit carried an `Idempotency-Key`.
    pub idempotency: Option<Box<Idempotency>>,
    /// Who submitted it.
    pub submitter: Submitter,
    /// Fields of the row that this version has no use for, as they were stored: they are stored again unchanged.
    pub carried: Option<Box<[u8]>>,
}

impl JobRow {
    /// Whether a worker took it since it last entered the queue.
    pub fn ran(&self) -> bool {
        self.started_at.0 > 0
    }

    /// Milliseconds in the queue before the current (or last) attempt; 0 when it did not run.
    pub fn delay_ms(&self) -> u64 {
        self.started_at.since(self.enqueued_at)
    }

    /// Milliseconds of execution: so far while running, in all when terminal, 0 when it did not run.
    pub fn execution_ms(&self, now: Millis) -> u64 {
        match self.state {
            _ if !self.ran() => 0,
            JobState::InProgress => now.since(self.started_at),
            _ => self.finished_at.since(self.started_at),
        }
    }
}
