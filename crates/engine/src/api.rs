//! Arguments, results and errors of the engine's interfaces. All of them are owned data.

use std::net::IpAddr;

use bytes::Bytes;
use longshore_model::{
    Counters, Idempotency, JobId, JobRow, JobState, Millis, Submitter, TraceContext, WorkerCounts, WorkerId,
    WorkerPhase,
};
use longshore_queue::{JobConditions, Refusal, StateCounts};
use longshore_store::StoreError;

use crate::BudgetPermit;
use crate::balancer::HealthNote;
use crate::chunk::StreamChunk;

/// Why an operation of [`Jobs`](crate::Jobs) or [`Workers`](crate::Workers) failed. Nothing was acknowledged; what a
/// method did before the error is in its documentation.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EndpointError {
    /// The queue refused the verb. Another try has the same result until the job or the queue changes.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// The endpoint is deleted.
    #[error("the endpoint no longer exists")]
    Deleted,
    /// The queue reloads or the server stops. Nothing has changed. A later try may succeed.
    #[error("the change could not be kept: {0}")]
    Unavailable(String),
    /// The commit failed. The change has no effect in this run of the server, but its bytes may be on the disk: after a
    /// power cut the change may have taken effect. A later try may succeed.
    #[error("the change could not be kept: {0}")]
    CommitFailed(String),
    /// A stored payload, outcome or chunk cannot be read now. A later try may succeed.
    #[error("what is stored of the job cannot be read now: {0}")]
    Unreadable(String),
    /// A stored payload, outcome or chunk is corrupt or missing. Another try has the same result.
    #[error("what is stored of the job is damaged: {0}")]
    Damaged(String),
    /// The budget has no memory for the payload to read. A later try may succeed.
    #[error("there is no room in memory for what is to be read")]
    NoRoom,
    /// The disk has too little space for new jobs. Nothing has changed; retry when there is space.
    #[error("the disk is full")]
    NoSpace,
    /// Too many bytes of requests are in memory and not durable yet. Nothing has changed; retry after 1 s.
    #[error("too many request bytes in flight; retry after 1 s")]
    Overloaded,
}

impl EndpointError {
    /// Whether the change was not made, and the same request may succeed later.
    pub(crate) fn is_of_writing(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::CommitFailed(_))
    }

    /// Whether stored data could not be read, now or ever.
    pub(crate) fn is_of_reading(&self) -> bool {
        matches!(self, Self::Unreadable(_) | Self::Damaged(_))
    }
}

/// Why a change of a resource or key failed. Nothing has changed, except as documented by the method.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CatalogError {
    /// There is no resource with this id or name.
    #[error("not found")]
    NotFound,
    /// The change contradicts another resource. The text names it and says what to do.
    #[error("{0}")]
    Conflict(String),
    /// The resource is not as the caller expected, because another change came first. Read it again.
    #[error("it was changed meanwhile")]
    Changed,
    /// A launcher failed to do its part of the change. A later try may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The change could not be made durable, or a secret of it could not be encrypted.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A job that a client submits.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The job's id, from [`Engine::mint_job`](crate::Engine::mint_job). Submitting the same id again returns the first
    /// job.
    pub id: JobId,
    /// The members of the request's JSON object without the outer braces, as the worker gets them: `input` always, then
    /// `webhook`, `s3Config`, `policy` and all other members that the client sent. The members that the server sets
    /// (`id`, `status`, `delayTime`) are missing.
    pub members: Bytes,
    /// Whether the client named a webhook.
    pub webhook: bool,
    /// From `policy.lowPriority`: the job causes no worker to start.
    pub low_priority: bool,
    /// From `policy.executionTimeout`; `None` for the endpoint's setting.
    pub execution_timeout_ms: Option<u32>,
    /// From `policy.ttl`; `None` for 24 hours.
    pub ttl_ms: Option<u32>,
    /// From the `Idempotency-Key` header.
    pub idempotency: Option<Box<Idempotency>>,
    /// The key of the request, and the key's owner.
    pub submitter: Submitter,
    /// From the `traceparent` header; `None` without one. Kept only by a server with traces.
    pub trace: Option<Box<TraceContext>>,
}

/// The job of a submit.
#[derive(Clone, Copy, Debug)]
pub struct Accepted {
    /// The id of the new job, or of the stored job that was submitted before.
    pub id: JobId,
    /// The state of the job. A new job is queued.
    pub state: JobState,
}

/// A job in one state, with its payloads.
#[derive(Clone, Debug)]
pub struct JobSnapshot {
    /// The durable row of the job.
    pub row: JobRow,
    /// The engine's time of the snapshot.
    pub now: Millis,
    /// The output, or the last progress value of a running job, as JSON text.
    pub output: Option<Bytes>,
    /// The size of the stored output or progress value, in bytes, also of one that is left out of a list; `None` without one.
    pub output_bytes: Option<u64>,
    /// The error of the job as plain text.
    pub error: Option<String>,
    /// The memory that output and error take in this process. Hold it until they are sent.
    pub room: BudgetPermit,
}

/// The jobs to list.
#[derive(Clone, Debug)]
pub struct JobFilter {
    /// What the jobs have to meet; the default for all jobs.
    pub conditions: JobConditions,
    /// The limit of the number of jobs in the page.
    pub limit: usize,
    /// The cursor of the page before; only jobs that come after this job in the list. `None` for the first page.
    pub before: Option<JobId>,
}

/// One page of a list of jobs.
#[derive(Clone, Debug)]
pub struct JobPage {
    /// The jobs, newest first. Outputs and errors of more than 4 KiB are left out.
    pub jobs: Vec<JobSnapshot>,
    /// The cursor of the next page; `None` at the end. A page with a cursor can have fewer jobs than the limit.
    pub cursor: Option<JobId>,
    /// The number of jobs that were examined for this page.
    pub searched: u64,
    /// The number of jobs that were to be examined and whose payloads could not be read.
    pub unread: u64,
    /// The number of jobs of the endpoint.
    pub of: u64,
}

/// The numbers of an endpoint's jobs and workers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health {
    /// Counts since the endpoint was created.
    pub counters: Counters,
    /// The number of queued jobs.
    pub in_queue: u64,
    /// The number of running jobs.
    pub in_progress: u64,
    /// The numbers of stored jobs by state.
    pub states: StateCounts,
    /// The numbers of workers by condition.
    pub workers: WorkerCounts,
}

/// A worker's request for jobs.
#[derive(Clone, Copy, Debug)]
pub struct TakeRequest {
    /// The number of jobs that the worker has room for.
    pub slots: u32,
    /// Whether the worker says that it has jobs in progress; `None` if it does not say.
    pub says_busy: Option<bool>,
    /// How long the take waits for a job, in ms.
    pub hold_ms: u64,
    /// The address of the worker; `None` if it is not known.
    pub address: Option<IpAddr>,
}

/// A job that a worker gets.
#[derive(Clone, Debug)]
pub struct TakenJob {
    /// The durable row of the job, with its new attempt.
    pub row: JobRow,
    /// The members of the job's JSON object, with `s3Config` decrypted.
    pub members: Bytes,
    /// The place of the attempt in the job's trace; `None` if the server sends no traces.
    pub trace: Option<TraceContext>,
    /// The memory that all jobs of one take have together in this process. Hold it until they are sent.
    pub room: BudgetPermit,
}

/// The end of a job as its worker reports it.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The handler returned a result.
    Completed {
        /// JSON text; `None` for a handler that returned an empty object.
        output: Option<Bytes>,
    },
    /// The handler reported an error.
    Failed {
        /// Plain text for the client.
        error: String,
        /// The output until the error, as JSON text.
        output: Option<Bytes>,
    },
}

/// The first chunk of a page of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFrom {
    /// The chunk at the consumed offset of the stream.
    Drained,
    /// The chunk with this offset, counted from 0.
    Offset(u64),
}

/// How long a job's stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSize {
    /// The number of chunks since the stream began, also of lost attempts.
    pub chunks: u64,
    /// The bytes of the stored chunks, as the store has them.
    pub bytes: u64,
}

/// A page of a job's stream.
#[derive(Clone, Debug)]
pub struct StreamPage {
    /// The job at the time of the page. If it is terminal and `more` is `false`, no chunk follows.
    pub job: JobSnapshot,
    /// The chunks, ascending by offset. The offsets that are missing belong to a lost attempt.
    pub chunks: Vec<StreamChunk>,
    /// Whether more chunks are stored than fit the page.
    pub more: bool,
    /// The memory that the chunks take in this process. Hold it until they are sent.
    pub room: BudgetPermit,
}

/// An endpoint's load and workers, as the queue knows them. The supervisor plans with it.
#[derive(Clone, Debug, Default)]
pub struct FleetView {
    /// The number of queued jobs without low priority. They may cause a worker to start.
    pub queued_normal: u64,
    /// The number of all queued jobs.
    pub queued: u64,
    /// The number of running jobs.
    pub running: u64,
    /// How long the job without low priority that waits longest is queued, in ms; `None` without such a job.
    pub oldest_normal_wait_ms: Option<u64>,
    /// Every worker that the queue knows, managed or external.
    pub workers: Vec<WorkerView>,
}

/// A worker as its queue knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// The id that the worker sends with each request.
    pub id: WorkerId,
    /// Whether the worker starts, waits for jobs, runs jobs or is drained.
    pub phase: WorkerPhase,
    /// The number of jobs that the worker holds.
    pub running: u32,
    /// How long the worker has held no job, in ms; 0 while it holds one.
    pub idle_ms: u64,
    /// The jobs that the worker holds.
    pub jobs: Vec<JobId>,
    /// The number of jobs that the worker ended since this server knows it.
    pub jobs_done: u64,
    /// The time of the worker's last request, or of its registration.
    pub last_contact: Millis,
    /// The address that an external worker last asked for jobs from. `None` for one that the server started, and for one that
    /// has not asked since the server knows it.
    pub address: Option<IpAddr>,
    /// The health by its checks; `None` for a worker that takes jobs.
    pub health: Option<HealthNote>,
}
