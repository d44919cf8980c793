//! The ends of a job: its transitions into a terminal state.

use crate::{Attempt, JobRow, JobState};

/// One transition of a job into a terminal state. A failed job that a client retries has a further end.
///
/// No two ends of a job are equal. Between two ends, a client retried the job. Then either a worker took the job, which
/// increased `attempt`, or the job was cancelled in the queue, which gave another `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// The terminal state of the job.
    pub state: JobState,
    /// The number of the last attempt before this end; 0 if no worker took the job.
    pub attempt: Attempt,
}

impl JobRow {
    /// The job's last end; `None` while the job is queued or running.
    pub fn end(&self) -> Option<JobEnd> {
        self.state.is_terminal().then_some(JobEnd { state: self.state, attempt: self.attempt })
    }

    /// The end for which a webhook call is pending; `None` without a pending call.
    pub fn pending_end(&self) -> Option<JobEnd> {
        self.end().filter(|_| self.webhook_pending)
    }
}
