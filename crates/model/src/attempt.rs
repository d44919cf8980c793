//! How the attempts of a job ended.

use alloc::boxed::Box;

use crate::limits::ATTEMPT_REASON_BYTES_MAX;
use crate::{Attempt, Millis, WorkerId};

/// How an attempt of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AttemptEnd {
    // The numbers are on disk: append, never reuse.
    /// The worker reported a result. The job's row has this end.
    Completed = 0,
    /// The handler reported an error, or its result could not be accepted.
    Failed = 1,
    /// The job ran longer than its execution timeout.
    TimedOut = 2,
    /// A client cancelled the job. The job's row has this end.
    Cancelled = 3,
    /// The worker exited, was not heard of for too long, or dropped the job.
    WorkerLost = 4,
    /// The server stopped the worker.
    Drained = 5,
    /// The worker did not get the job.
    Undelivered = 6,
}

impl AttemptEnd {
    /// Every end, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::Cancelled,
        Self::WorkerLost,
        Self::Drained,
        Self::Undelivered,
    ];

    /// The end's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timedOut",
            Self::Cancelled => "cancelled",
            Self::WorkerLost => "workerLost",
            Self::Drained => "drained",
            Self::Undelivered => "undelivered",
        }
    }

    /// The end with this number on disk; `None` for an unknown number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

// `from_number` takes a number for an index.
const _: () = {
    let mut at = 0;
    while at < AttemptEnd::ALL.len() {
        assert!(AttemptEnd::ALL[at] as usize == at);
        at += 1;
    }
};

/// An attempt of a job that ended without its result: a row beside the job's row, which has the present attempt only.
/// Of each job the last [`ATTEMPTS_MAX`](crate::limits::ATTEMPTS_MAX) are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// The number of the attempt.
    pub n: Attempt,
    /// The worker that had the job; `None` if it is unknown.
    pub worker: Option<WorkerId>,
    /// The type of the worker's first GPU; `None` if it has none that the server knows.
    pub gpu: Option<Box<str>>,
    /// When the worker took the job.
    pub taken_at: Millis,
    /// When the attempt ended.
    pub ended_at: Millis,
    /// How the attempt ended; neither completed nor cancelled.
    pub end: AttemptEnd,
    /// Why it ended, in at most [`ATTEMPT_REASON_BYTES_MAX`] bytes.
    pub reason: Box<str>,
}

impl EndedAttempt {
    /// Returns the part of a reason that is stored.
    pub fn cut_reason(reason: &str) -> Box<str> {
        reason[..reason.floor_char_boundary(ATTEMPT_REASON_BYTES_MAX)].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        assert_eq!(&*EndedAttempt::cut_reason("exit code 1"), "exit code 1");
        let long = "€".repeat(ATTEMPT_REASON_BYTES_MAX);
        assert_eq!(EndedAttempt::cut_reason(&long).len(), ATTEMPT_REASON_BYTES_MAX / 3 * 3);
    }
}
