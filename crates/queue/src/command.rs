//! Everything that can be asked of a queue.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{Attempt, Idempotency, JobEnd, JobId, Submitter, WorkerId};

/// One request to the machine. Whoever sends it waits for the [`crate::Reply`] in the effects.
#[derive(Clone, Debug)]
pub enum Command {
    /// A client hands in a job.
    Submit(Submit),
    /// A worker asks for jobs.
    Take(Take),
    /// A worker reports how a job came out.
    Report {
        /// Who reports.
        worker: WorkerId,
        /// The job.
        job: JobId,
        /// What came out.
        report: Report,
    },
    /// A worker reports how far a job is; the bytes replace the last progress value.
    Progress {
        /// Who reports.
        worker: WorkerId,
        /// The job.
        job: JobId,
    },
    /// A worker wants to append chunks to a job's stream.
    Append {
        /// Who appends.
        worker: WorkerId,
        /// The job.
        job: JobId,
    },
    /// A job was handed out, and never left: what its worker was to get could not be read. It waits and is tried again
    /// later, or is over. Means nothing to a job that was taken back meanwhile.
    Undelivered {
        /// The job.
        job: JobId,
        /// The attempt that it was handed out in.
        attempt: Attempt,
        /// What the client is told if its input is lost for good; none if it may be read later.
        damage: Option<String>,
    },
    /// A worker shows that it lives. Any request of a worker does; only pings say what it holds.
    Ping {
        /// Who lives.
        worker: WorkerId,
        /// The jobs it says it holds; none for a contact that does not say.
        holds: Option<Vec<JobId>>,
    },
    /// A worker asks what to stop. It says nothing of jobs, but it lives.
    TouchWorker(WorkerId),
    /// A client wants the job to end now.
    Cancel(JobId),
    /// A client wants a failed or timed-out job to run again.
    Retry(JobId),
    /// A client wants every queued job to be cancelled.
    Purge,
    /// A client sets the time of a job's deletion to `ttl_ms` from now.
    SetTtl {
        /// The job.
        job: JobId,
        /// From now, in milliseconds.
        ttl_ms: u64,
    },
    /// A launcher started a worker (or found one alive after a restart). It counts, without having asked yet.
    RegisterWorker(WorkerId),
    /// A worker is to get no more jobs.
    DrainWorker(WorkerId),
    /// A worker is gone: its jobs go back to the queue.
    LoseWorker {
        /// Who is gone.
        worker: WorkerId,
        /// Whether its jobs count a retry: a crash does, a stop that we asked for does not.
        counts_retry: bool,
        /// What to tell the client if a job runs out of retries: exit code, signal, last log lines.
        reason: String,
    },
    /// Nobody listened for a while: the machine slept, this process was stopped, or its clock jumped. What the
    /// workers did not say meanwhile is not held against them.
    RenewLeases,
    /// The receiver of a job's webhook was told of this end, or the attempts are used up. It means nothing to a job
    /// that was retried and has ended again meanwhile.
    SettleWebhook {
        /// The job.
        job: JobId,
        /// The end that the call reported.
        end: JobEnd,
    },
    /// A client wants the receiver of the job's webhook to be told of this end once more.
    RedeliverWebhook {
        /// The job.
        job: JobId,
        /// The end that the call reports.
        end: JobEnd,
    },
    /// Time passed: handle deadlines, at most a slice of them.
    Tick,
    /// The endpoint's settings changed.
    Configure(QueueSettings),
    /// The endpoint is deleted: remove a slice of its jobs. Repeat until the reply says that none is left.
    DeleteSlice,
}

/// A job as it is handed in. Its payload stays outside.
#[derive(Clone, Debug)]
pub struct Submit {
    /// Minted at the edge: the same id again is the same job.
    pub id: JobId,
    /// Size of the input.
    pub input_bytes: u32,
    /// The job never causes a worker to start.
    pub low_priority: bool,
    /// A webhook call is owed at the end.
    pub webhook: bool,
    /// From the job's policy; none means the endpoint's.
    pub execution_timeout_ms: Option<u32>,
    /// From the job's policy; none means 24 hours.
    pub ttl_ms: Option<u32>,
    /// The client's `Idempotency-Key`.
    pub idempotency: Option<Box<Idempotency>>,
    /// The client's key and its owner.
    pub submitter: Submitter,
}

/// A worker's question for jobs.
#[derive(Clone, Debug)]
pub struct Take {
    /// Who asks.
    pub worker: WorkerId,
    /// How many jobs it has room for; at least 1.
    pub slots: u32,
    /// What it says of jobs in progress; none where it does not say.
    pub says_busy: Option<bool>,
    /// Another take of the same worker is still open. Then an idle answer may cross a job on its way.
    pub overlapping: bool,
    /// The inputs of the jobs that it gets are at most so long together, in bytes.
    pub input_bytes_max: u64,
}

/// What a worker says came out of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A result of this many bytes (0 for none).
    Completed {
        /// Size of the output.
        output_bytes: u64,
    },
    /// An error.
    Failed,
}

/// The part of an endpoint's record that its queue goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// `workersMax` is 0: jobs queue, nothing runs.
    pub paused: bool,
    /// The longest a job may run unless its policy says otherwise.
    pub execution_timeout_ms: u64,
    /// Automatic re-dispatches of one job.
    pub max_retries: u8,
    /// An error that a handler reports causes one.
    pub retry_handler_errors: bool,
    /// How long a finished `/run` job is kept.
    pub retention_ms: u64,
    /// How long a finished `/runsync` job is kept.
    pub sync_retention_ms: u64,
    /// The longest output of a `/run` job.
    pub output_bytes_max: u64,
    /// The longest output of a `/runsync` job.
    pub sync_output_bytes_max: u64,
    /// The most jobs in the queue; over it submits are refused.
    pub jobs_max: u64,
    /// A worker that was not heard of for so long is lost.
    pub lease_ms: u64,
    /// How long a worker may take to let go of a job that it was told to stop.
    pub stop_grace_ms: u64,
}
