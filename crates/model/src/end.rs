//! Which of a job's ends is meant.

use crate::{Attempt, JobRow, JobState};

/// One of a job's ends: a failed job that a client retries ends again.
///
/// No two ends of a job are equal. Of two that follow each other, the first was a failure and was retried; since then
/// either a worker took the job, which counted an attempt, or it was cancelled in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobEnd {
    /// How it ended.
    pub state: JobState,
    /// The last attempt before.
    pub attempt: Attempt,
}

impl JobRow {
    /// How the job ended; none while it has not.
    pub fn end(&self) -> Option<JobEnd> {
        self.state.is_terminal().then_some(JobEnd { state: self.state, attempt: self.attempt })
    }

    /// The end that the receiver of the job's webhook has still to be told of.
    pub fn pending_end(&self) -> Option<JobEnd> {
        self.end().filter(|_| self.webhook_pending)
    }
}
