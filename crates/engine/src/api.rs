//! What can be asked of an endpoint, and the answers.

use bytes::Bytes;
use longshore_model::{
    Counters, Idempotency, JobId, JobRow, JobState, Millis, Submitter, WorkerCounts, WorkerId, WorkerPhase,
};
use longshore_queue::Refusal;
use longshore_store::StoreError;

use crate::chunk::StreamChunk;

use crate::BudgetPermit;

/// Why an endpoint did not do what was asked. Nothing changed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EndpointError {
    /// The queue refused.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// The endpoint was deleted meanwhile.
    #[error("the endpoint no longer exists")]
    Deleted,
    /// The change could not be made durable, or the server is stopping; asking again later may help.
    #[error("the change could not be kept: {0}")]
    Unavailable(String),
    /// What is stored of the job cannot be read now; asking again later may help.
    #[error("what is stored of the job cannot be read now: {0}")]
    Unreadable(String),
    /// What is stored of the job is damaged or missing; asking again does not help.
    #[error("what is stored of the job is damaged: {0}")]
    Damaged(String),
    /// There is no room in memory for what is to be read; asking again later may help.
    #[error("there is no room in memory for what is to be read")]
    NoRoom,
    /// Too many bytes of requests are in memory and not durable yet. Nothing has changed; retry after 1 s.
    #[error("too many request bytes in flight; retry after 1 s")]
    Overloaded,
}

impl EndpointError {
    /// Whether the disk is to blame, or what is on it.
    pub(crate) fn is_of_reading(&self) -> bool {
        matches!(self, Self::Unreadable(_) | Self::Damaged(_))
    }
}

/// Why the catalog did not change.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CatalogError {
    /// No such thing.
    #[error("not found")]
    NotFound,
    /// It clashes with something that exists; the text names it.
    #[error("{0}")]
    Conflict(String),
    /// It is not as whoever asked expected it to be.
    #[error("it was changed meanwhile")]
    Changed,
    /// What the change needs cannot be had at the moment.
    #[error("{0}")]
    Unavailable(String),
    /// The change could not be made durable.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job as a client hands it in.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Minted at the edge ([`crate::Engine::mint_job`]); its prefix says whether it came through `/runsync`.
    pub id: JobId,
    /// The members of the request's JSON object without the outer braces, as the worker is to see them:
    /// `input` always, then `webhook`, `s3Config`, `policy` and whatever else the client sent, except
    /// the members that the server sets itself (`id`, `status`, `delayTime`).
    pub members: Bytes,
    /// The client named a webhook.
    pub webhook: bool,
    /// From `policy.lowPriority`.
    pub low_priority: bool,
    /// From `policy.executionTimeout`.
    pub execution_timeout_ms: Option<u32>,
    /// From `policy.ttl`.
    pub ttl_ms: Option<u32>,
    /// From the `Idempotency-Key` header.
    pub idempotency: Option<Box<Idempotency>>,
    /// The key that it came with, and that key's owner.
    pub submitter: Submitter,
}

/// What a submit came to.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The job's id.
    pub id: JobId,
    /// Where the job is in its life: waiting, unless it was there before.
    pub state: JobState,
}

/// A job at one moment.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    /// The durable facts.
    pub row: JobRow,
    /// The moment.
    pub now: Millis,
    /// The output, or the latest progress value while it runs: JSON text.
    pub output: Option<Bytes>,
    /// The error as plain text.
    pub error: Option<String>,
    /// The room in memory that output and error take: to be held until they are sent.
    pub room: BudgetPermit,
}

/// Which jobs to list.
#[derive(Clone, Copy, Debug)]
pub struct JobFilter {
    /// Only those in this state.
    pub state: Option<JobState>,
    /// At most so many.
    pub limit: usize,
    /// Only those created before this job: the last page's cursor.
    pub before: Option<JobId>,
}

/// One page of a list, newest first.
#[derive(Clone, Debug)]
pub struct JobPage {
    /// The jobs. Outputs and errors of more than 4 KiB are left out here.
    pub jobs: Vec<JobSnapshot>,
    /// Where the next page starts; none at the end. A page can be short and still have a next one.
    pub cursor: Option<JobId>,
}

/// An endpoint's numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health {
    /// Counted since the endpoint was created.
    pub counters: Counters,
    /// Jobs that wait.
    pub in_queue: u64,
    /// Jobs that a worker holds.
    pub in_progress: u64,
    /// Workers by condition.
    pub workers: WorkerCounts,
}

/// How a worker asks for jobs.
#[derive(Clone, Copy, Debug)]
pub struct TakeRequest {
    /// How many it has room for.
    pub slots: u32,
    /// What it says of jobs in progress, if anything.
    pub says_busy: Option<bool>,
    /// How long to hold the question open while there is nothing, in milliseconds.
    pub hold_ms: u64,
}

/// A job on its way to a worker.
#[derive(Clone, Debug)]
pub struct TakenJob {
    /// The durable facts.
    pub row: JobRow,
    /// The members of its JSON object, as submitted.
    pub members: Bytes,
    /// The room in memory that the jobs taken together have: to be held until they are sent.
    pub room: BudgetPermit,
}

/// How a job came out, as its worker says.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A result; none for a handler that returned an empty object.
    Completed {
        /// JSON text.
        output: Option<Bytes>,
    },
    /// An error, perhaps with what there is of an output.
    Failed {
        /// Plain text.
        error: String,
        /// JSON text.
        output: Option<Bytes>,
    },
}

/// Where to read a stream from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFrom {
    /// After the last drained chunk.
    Drained,
    /// From this offset.
    Offset(u64),
}

/// A piece of a stream.
#[derive(Clone, Debug)]
pub struct StreamPage {
    /// The job at that moment. When its state is terminal and `more` is false, no chunk comes after these.
    pub job: JobSnapshot,
    /// The chunks, ascending by offset.
    pub chunks: Vec<StreamChunk>,
    /// More chunks are stored than fit the page.
    pub more: bool,
    /// The room in memory that the chunks take: to be held until they are sent.
    pub room: BudgetPermit,
}

/// What the supervisor needs to know of an endpoint's load and workers.
#[derive(Clone, Debug, Default)]
pub struct FleetView {
    /// Waiting jobs that may cause a worker to start.
    pub queued_normal: u64,
    /// All waiting jobs.
    pub queued: u64,
    /// Jobs that a worker holds.
    pub running: u64,
    /// How long the oldest normal job has waited.
    pub oldest_normal_wait_ms: Option<u64>,
    /// Every worker that the queue knows of.
    pub workers: Vec<WorkerView>,
}

/// A worker as its queue sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Its id.
    pub id: WorkerId,
    /// What it is doing.
    pub phase: WorkerPhase,
    /// How many jobs it holds.
    pub running: u32,
    /// For how long it has held none, in milliseconds; 0 while it holds one.
    pub idle_ms: u64,
}
