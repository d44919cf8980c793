//! The verb tick: deletes expired jobs, ends purged jobs and those that ran too long, and checks workers.

use longshore_model::{AttemptEnd, JobState, Millis};

use crate::jobs::Slot;
use crate::queue::SLICE_JOBS_MAX;
use crate::transitions::DELETED;
use crate::{Change, Effects, Queue};

impl Queue {
    /// Handles what is due at `now`: purged jobs, deferred jobs, deadlines of jobs and checks of workers, in this order. One
    /// call cancels, times out and deletes at most one slice of jobs. If more is due, [`Queue::next_deadline`] returns a
    /// time that has passed.
    pub fn tick(&mut self, now: Millis, out: &mut Effects) {
        let mut done = self.cancel_purged(now, out) + self.retry_deferred(now, out);
        while done < SLICE_JOBS_MAX {
            let due = self.deadlines.first().filter(|(at, _)| *at <= now);
            let Some((at, slot)) = due else { break };
            self.job_due(at, slot, now, out);
            done += 1;
        }
        while done < SLICE_JOBS_MAX {
            let Some(worker) = self.workers.pop_due(now) else { break };
            self.check_worker(now, &worker, out);
            done += 1;
        }
    }

    /// Times out or deletes a job whose deadline `at` has passed.
    fn job_due(&mut self, at: Millis, slot: Slot, now: Millis, out: &mut Effects) {
        let row = &self.jobs[slot];
        if row.delete_at() <= now && row.webhook_pending() && row.state().is_terminal() {
            // The row is stored until the call is settled. `DELETED` keeps the job invisible if the clock is set back.
            self.unschedule(slot);
            self.jobs[slot].extras_mut().delete_at = DELETED;
            self.put(slot, out);
        } else if row.delete_at() <= now {
            self.stop_holder(slot, now, out);
            self.remove(slot, now, out);
        } else if row.state() == JobState::InProgress {
            let error = alloc::format!(
                "the job ran longer than its execution timeout of {} ms",
                row.execution_timeout_ms
            );
            self.put_attempt(slot, AttemptEnd::TimedOut, &error, now, out);
            out.changes.push(Change::PutError(self.jobs[slot].key(), error));
            self.stop_holder(slot, now, out);
            self.end(slot, JobState::TimedOut, now, out);
        } else {
            unreachable!("a job in state {} has no deadline at {at} before its deletion", row.state());
        }
    }
}
