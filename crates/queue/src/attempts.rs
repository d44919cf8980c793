//! Attempts that ended without the job's result: each becomes a row of its own, because the job's row has only the present
//! or last attempt. Every other end of an attempt follows from the job's row.

use alloc::boxed::Box;

use longshore_model::{AttemptEnd, EndedAttempt, Millis};

use crate::jobs::Slot;
use crate::{Change, Effects, Queue};

impl Queue {
    /// Adds a change that stores the present attempt of a job as ended. To be called before the job's state changes.
    pub(crate) fn put_attempt(
        &self,
        slot: Slot,
        end: AttemptEnd,
        reason: &str,
        now: Millis,
        out: &mut Effects,
    ) {
        let row = &self.jobs[slot];
        let attempt = EndedAttempt {
            n: row.attempt(),
            worker: row.worker().cloned(),
            gpu: self.jobs.gpu(slot).map(|gpu| Box::from(&**gpu)),
            taken_at: row.started_at(),
            ended_at: now,
            end,
            reason: EndedAttempt::cut_reason(reason),
        };
        out.changes.push(Change::PutAttempt(row.key(), Box::new(attempt)));
    }
}
