//! What a verb causes: rows to write and wake-ups. Also the reasons for which a verb is refused.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{
    AttemptEnd, EndedAttempt, JobEnd, JobId, JobKey, JobRow, JobState, Millis, Submitter, WorkerId,
};

/// What a verb caused, in addition to its result. The caller commits `changes`, then releases the result and `signals`.
#[must_use]
#[derive(Debug, Default)]
pub struct Effects {
    /// Changes of rows, in order. They are written in one commit, completely or not at all.
    pub changes: Vec<Change>,
    /// Wake-ups, held until the commit that covers them. A lost signal delays work; no job or result is lost with it.
    pub signals: Vec<Signal>,
}

impl Effects {
    /// Adds [`Signal::LetGo`] if the confirmed stop was of the worker's only job since `alone_since`; nothing if `None`.
    pub(crate) fn stop_confirmed(&mut self, now: Millis, id: &WorkerId, alone_since: Option<Millis>) {
        if let Some(since) = alone_since {
            self.signals.push(Signal::LetGo { worker: id.clone(), since, until: now });
        }
    }
}

/// One change of a stored row. A payload is not part of it: the caller of the verb has the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Inserts or replaces the row of a job.
    PutJob(Box<JobRow>),
    /// Deletes the row of a job, with its input, outcome, stream and pending webhook call.
    DeleteJob(JobKey),
    /// Stores the input that came with the submit.
    PutInput(JobKey),
    /// Stores the outcome or progress value that came with the report, in place of an earlier one.
    PutOutcome(JobKey),
    /// Stores this error as the outcome, in place of an earlier one.
    PutError(JobKey, String),
    /// Deletes the outcome, if there is one.
    ClearOutcome(JobKey),
    /// Stores an attempt that ended without the job's result. The caller adds the worker's GPU.
    PutAttempt(JobKey, Box<EndedAttempt>),
    /// Deletes the chunks of an attempt that did not end the job. The offsets of later chunks continue.
    DropChunks(JobKey),
    /// Deletes the stream. The next chunk has offset 0; for a client retry.
    ResetStream(JobKey),
    /// Stores a pending webhook call. The job had none.
    PutWebhook(JobKey),
    /// Deletes the pending webhook call.
    DeleteWebhook(JobKey),
}

/// A wake-up for the engine. It carries what its receivers need, so that they need not query the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A queued job became ready, or may be: parked takes are to be tried again.
    JobReady,
    /// A job became terminal; its waiters get the row.
    Ended {
        /// The public id of the job.
        job: JobId,
        /// The key of the job's row.
        key: JobKey,
        /// The API key and the owner of the submit.
        submitter: Submitter,
        /// The terminal state.
        state: JobState,
        /// Execution time of the last attempt, in ms; `None` if the job did not run since it last entered the queue.
        ran_ms: Option<u64>,
        /// The job was running: with this end, its last attempt ended too.
        was_running: bool,
    },
    /// An attempt of a job ended, and the job is queued again.
    Requeued(Box<Requeued>),
    /// A job was deleted before it became terminal; its row before that.
    Expired(Box<JobRow>),
    /// The row of a job was deleted. Its waiters are to be dropped.
    Deleted(JobId, JobKey),
    /// The worker must stop this job.
    StopJob(WorkerId, JobId),
    /// The managed worker is stuck or its lease ended; it must be replaced. The text is the reason.
    ReplaceWorker(WorkerId, String),
    /// The worker confirmed the stop of a job that was its only one from `since` to `until`. Processes that it started in
    /// this time and that still run are left over from the job (ADR 0017).
    LetGo {
        /// The worker that ran the job.
        worker: WorkerId,
        /// When the worker took the job.
        since: Millis,
        /// When the worker confirmed the stop.
        until: Millis,
    },
    /// The webhook call of this end is due. Its row is stored by the same commit.
    WebhookDue(JobId, JobKey, JobEnd),
    /// The number of queued or running jobs, or a worker's phase, changed.
    LoadChanged,
}

/// The end of an attempt after which the job is queued again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeued {
    /// The row of the job while the attempt ran.
    pub row: JobRow,
    /// When the attempt ended.
    pub at: Millis,
    /// How the attempt ended.
    pub end: AttemptEnd,
    /// Whether the requeue counts as a retry.
    pub counts: bool,
    /// Why the attempt ended, in the server's words or in those of the exit of its worker.
    pub reason: String,
}

/// Why a queue refused a verb. The verb changed nothing. `longshore-http` maps each variant to one status and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The id is unknown or the job has expired.
    NoSuchJob,
    /// The job is in another state than `FAILED` and `TIMED_OUT`.
    NotRetryable,
    /// The job has no webhook, or this end is not its present one: it has not ended, or was retried.
    WebhookNotRedeliverable,
    /// A job with the same `Idempotency-Key` was submitted with another body.
    IdempotencyKeyReused,
    /// The queue has `jobs_max` queued jobs, or no sequence number is left. Submit again later.
    QueueFull,
}
