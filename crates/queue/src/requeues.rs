//! Why jobs were requeued lately, for clients that ask why their job waits.
//!
//! Volatile, and bounded: a note of an older requeue is replaced by a later one.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use longshore_model::{JobId, Millis};

/// The number of requeues that are noted.
const NOTES_MAX: usize = 64;
/// The longest noted reason, in bytes.
const REASON_BYTES_MAX: usize = 400;

/// The last requeues, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Requeues(VecDeque<(JobId, Millis, Box<str>)>);

impl Requeues {
    /// Notes a requeue in place of an earlier one of the same job. A long reason is cut.
    pub(crate) fn note(&mut self, job: JobId, at: Millis, reason: &str) {
        self.0.retain(|(noted, ..)| *noted != job);
        if self.0.len() == NOTES_MAX {
            self.0.pop_front();
        }
        let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
        self.0.push_back((job, at, reason.into()));
    }

    /// When and why the job was requeued; `None` without a note.
    pub(crate) fn find(&self, job: JobId) -> Option<(Millis, &str)> {
        let note = self.0.iter().find(|(noted, ..)| *noted == job)?;
        Some((note.1, &note.2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: u64) -> JobId {
        JobId::mint(Millis(1_000 + number), u128::from(number) as _, false)
    }

    #[test]
    fn the_oldest_notes_are_replaced_and_long_reasons_cut() {
        let mut requeues = Requeues::default();
        for number in 0..70 {
            requeues.note(job(number), Millis(number), "lost");
        }
        assert_eq!(requeues.find(job(5)), None);
        assert_eq!(requeues.find(job(6)), Some((Millis(6), "lost")));
        requeues.note(job(6), Millis(99), &"ü".repeat(300));
        let (at, reason) = requeues.find(job(6)).unwrap();
        assert_eq!((at, reason.len()), (Millis(99), 400));
        assert_eq!(requeues.0.len(), NOTES_MAX);
    }
}
