//! Time passed.

use longshore_model::{JobEnd, JobId, JobState, Millis};

use crate::jobs::Slot;
use crate::queue::SLICE_JOBS_MAX;
use crate::transitions::DELETED;
use crate::{Change, Effects, Queue};

impl Queue {
    /// Handles what is due, a slice at a time; [`Queue::next_deadline`] says when to come again.
    pub fn tick(&mut self, now: Millis, out: &mut Effects) {
        let mut done = self.cancel_purged(now, out) + self.return_aside(now, out);
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

    fn job_due(&mut self, at: Millis, slot: Slot, now: Millis, out: &mut Effects) {
        let row = &self.jobs[slot];
        if row.delete_at() <= now && row.webhook_pending() && row.state().is_terminal() {
            // Its row stays, and says for good that the job is gone: after a restart the clock may show less.
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
            out.changes.push(Change::PutError(row.key(), error));
            self.stop_holder(slot, now, out);
            self.end(slot, JobState::TimedOut, now, out);
        } else {
            unreachable!("a job in state {} has no deadline at {at} before its deletion", row.state());
        }
    }

    /// Ends the webhook call of this end: its receiver accepted it, or the attempts are used up. Means nothing to a job
    /// that was retried and has ended again meanwhile.
    pub fn settle_webhook(&mut self, job: JobId, end: JobEnd, out: &mut Effects) {
        let Some(slot) = self.jobs.find(job) else { return };
        if self.jobs[slot].pending_end() == Some(end) {
            self.unschedule(slot);
            self.jobs[slot].extras_mut().webhook_pending = false;
            self.schedule(slot);
            out.changes.push(Change::DeleteWebhook(self.jobs[slot].key()));
            self.put(slot, out);
        }
    }
}
