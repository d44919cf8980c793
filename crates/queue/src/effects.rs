//! What a verb causes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use longshore_model::{JobEnd, JobId, JobKey, JobRow, JobState, Millis, Submitter, WorkerId};

/// What a verb caused, beside its result. The engine's only law: commit `changes`, then release the result and `signals`.
#[must_use]
#[derive(Debug, Default)]
pub struct Effects {
    /// Rows to write, all or nothing.
    pub changes: Vec<Change>,
    /// Wake-ups, held until the commit that covers them. Losing one delays work, never loses it.
    pub signals: Vec<Signal>,
}

impl Effects {
    /// A worker let go of stopped jobs, the last of which was its only one since then.
    pub(crate) fn let_go(&mut self, now: Millis, id: &WorkerId, alone_since: Option<Millis>) {
        if let Some(since) = alone_since {
            self.signals.push(Signal::LetGo { worker: id.clone(), since, until: now });
        }
    }
}

/// One change of a row. Where a payload belongs to it, the caller of the verb has the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Insert or replace.
    PutJob(Box<JobRow>),
    /// Remove, with everything that belongs to it.
    DeleteJob(JobKey),
    /// Keep the input that came with the submit.
    PutInput(JobKey),
    /// Keep the outcome (or the progress value) that came with the report.
    PutOutcome(JobKey),
    /// Keep this error instead of any outcome.
    PutError(JobKey, String),
    /// Remove the outcome.
    ClearOutcome(JobKey),
    /// Remove the chunks of an attempt that did not finish; offsets go on.
    DropChunks(JobKey),
    /// Remove the stream altogether: an explicit retry starts at offset 0.
    ResetStream(JobKey),
    /// A webhook call is owed from now on.
    PutWebhook(JobKey),
    /// No webhook call is owed any more.
    DeleteWebhook(JobKey),
}

/// A hint to the shell around the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A job is ready: let a parked take try again.
    JobReady,
    /// The job is terminal: whoever waits for it can have its record.
    Ended {
        /// The job.
        job: JobId,
        /// Where it lives.
        key: JobKey,
        /// Who submitted it.
        submitter: Submitter,
        /// How it ended.
        state: JobState,
        /// How long the attempt ran that ended; none where none ran.
        ran_ms: Option<u64>,
    },
    /// The job is gone: whoever waits for it must hear that.
    Deleted(JobId, JobKey),
    /// The worker must stop this job.
    StopJob(WorkerId, JobId),
    /// The worker did not let go, or was silent: replace it. The text says why.
    ReplaceWorker(WorkerId, String),
    /// The worker has let go of a stopped job that was the only one in its hands from one moment to the other.
    LetGo {
        /// Which worker.
        worker: WorkerId,
        /// When it got the job.
        since: Millis,
        /// When it let go.
        until: Millis,
    },
    /// A webhook call that reports this end is due.
    WebhookDue(JobId, JobKey, JobEnd),
    /// The number of waiting or running jobs, or of workers, changed.
    LoadChanged,
}

/// Why a queue refused a verb. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such job, or it expired.
    NoSuchJob,
    /// Only a failed or timed-out job can be retried.
    NotRetryable,
    /// The job has no webhook, or has been retried since that end.
    WebhookNotRedeliverable,
    /// The same `Idempotency-Key` came with another body.
    IdempotencyKeyReused,
    /// The queue holds as many jobs as it may.
    QueueFull,
}
