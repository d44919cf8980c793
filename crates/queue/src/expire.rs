//! Time passed.

use longshore_model::{End, JobId, JobState, Millis};

use crate::jobs::Slot;
use crate::life::GONE;
use crate::queue::SLICE;
use crate::{Change, Effects, Queue, Reply};

impl Queue {
    /// Handles what is due, a slice at a time; [`Queue::next_deadline`] says when to come again.
    pub(crate) fn tick(&mut self, now: Millis, out: &mut Effects) -> Reply {
        let mut done = self.cancel_purged(now, out) + self.return_aside(now, out);
        while done < SLICE {
            let due = self.deadlines.first().filter(|(at, _)| *at <= now);
            let Some((at, slot)) = due else { break };
            self.job_due(at, slot, now, out);
            done += 1;
        }
        while done < SLICE {
            let Some(worker) = self.workers.pop_due(now) else { break };
            self.check_worker(now, &worker, out);
            done += 1;
        }
        Reply::Done
    }

    fn job_due(&mut self, at: Millis, slot: Slot, now: Millis, out: &mut Effects) {
        let row = &self.jobs[slot];
        if row.delete_at() <= now && row.webhook_owed() && row.state().is_terminal() {
            // Its row stays, and says for good that the job is gone: after a restart the clock may show less.
            self.unschedule(slot);
            self.jobs[slot].changed().delete_at = GONE;
            self.put(slot, out);
        } else if row.delete_at() <= now {
            self.stop_holder(slot, now, out);
            self.remove(slot, now, out);
        } else if row.state() == JobState::InProgress {
            let error = alloc::format!(
                "the job ran longer than its execution timeout of {} ms",
                row.execution_timeout_ms
            );
            out.changes.push(Change::KeepError(row.key(), error));
            self.stop_holder(slot, now, out);
            self.end(slot, JobState::TimedOut, now, out);
        } else {
            // No other state has an earlier deadline. Forget a stray entry rather than see it for ever.
            debug_assert!(false, "a deadline that means nothing");
            self.deadlines.remove(at, slot);
        }
    }

    pub(crate) fn webhook_settled(&mut self, job: JobId, end: End, out: &mut Effects) -> Reply {
        let Some(slot) = self.jobs.find(job) else { return Reply::Done };
        if self.jobs[slot].owed_end() == Some(end) {
            self.unschedule(slot);
            self.jobs[slot].changed().webhook_owed = false;
            self.schedule(slot);
            out.changes.push(Change::ForgetHook(self.jobs[slot].key()));
            self.put(slot, out);
        }
        Reply::Done
    }
}
