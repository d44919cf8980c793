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

/// Stands where a reason is cut.
const CUT: &str = "…";

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
    /// Returns the part of a reason that is stored: of a long one its first line and as many of its last ones as there is
    /// room for, with [`CUT`] between them. A first line of more than half of the room is cut itself.
    pub fn cut_reason(reason: &str) -> Box<str> {
        if reason.len() <= ATTEMPT_REASON_BYTES_MAX {
            return reason.into();
        }
        let Some((first, rest)) = reason.trim_end().split_once('\n') else {
            let end = reason.floor_char_boundary(ATTEMPT_REASON_BYTES_MAX - CUT.len());
            return [&reason[..end], CUT].concat().into();
        };
        let first_end = first.floor_char_boundary(ATTEMPT_REASON_BYTES_MAX / 2);
        let room = ATTEMPT_REASON_BYTES_MAX - first_end - "\n".len() - CUT.len();
        let tail = &rest[rest.ceil_char_boundary(rest.len().saturating_sub(room))..];
        // Whole lines, unless the last one alone has no room.
        let tail = tail.split_once('\n').map_or(tail, |(_, lines)| lines);
        [&first[..first_end], "\n", CUT, tail].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        assert_eq!(&*EndedAttempt::cut_reason("exit code 1"), "exit code 1");
        let long = "€".repeat(ATTEMPT_REASON_BYTES_MAX);
        let cut = EndedAttempt::cut_reason(&long);
        assert!(cut.len() <= ATTEMPT_REASON_BYTES_MAX && cut.ends_with("€…"), "{cut}");
    }

    #[test]
    fn a_long_reason_keeps_its_first_line_and_its_last_ones() {
        let lines: Vec<String> = (1..=50).map(|n| format!("line {n} of the log: €")).collect();
        let cut = EndedAttempt::cut_reason(&format!("exit code 1\n{}\n", lines.join("\n")));
        assert!(cut.len() <= ATTEMPT_REASON_BYTES_MAX && cut.len() > ATTEMPT_REASON_BYTES_MAX - 40, "{cut}");
        let kept: Vec<&str> = cut.lines().collect();
        assert_eq!((kept[0], kept[kept.len() - 1]), ("exit code 1", "line 50 of the log: €"));
        assert_eq!(kept[1].strip_prefix(CUT), lines.get(50 + 1 - kept.len()).map(String::as_str));
        let one_line = format!("exit code 1\n{} the end", "€".repeat(ATTEMPT_REASON_BYTES_MAX));
        let cut = EndedAttempt::cut_reason(&one_line);
        assert!(cut.len() <= ATTEMPT_REASON_BYTES_MAX && cut.ends_with("€ the end"), "{cut}");
    }
}
