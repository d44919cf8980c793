//! A job was handed out, and its input could not be read: its worker never got it.

use alloc::string::String;

use longshore_model::{Attempt, JobId, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::queue::SLICE_JOBS_MAX;
use crate::transitions::Loss;
use crate::{Change, Effects, Queue, Signal};

impl Queue {
    /// Returns a job that was handed out and never left to its place in the queue, to be tried again later; or fails it
    /// with `damage`, if its input is lost for good. No retry is counted: nothing ran. Returns whether the job still was
    /// in that attempt; otherwise nothing changes.
    pub fn undelivered(
        &mut self,
        now: Millis,
        job: JobId,
        attempt: Attempt,
        damage: Option<String>,
        out: &mut Effects,
    ) -> bool {
        let Some(slot) = self.jobs.find(job) else { return false };
        let row = &self.jobs[slot];
        if row.state() != JobState::InProgress || row.attempt() != attempt || row.delete_at() <= now {
            // It was taken back meanwhile, or its time is over.
            return false;
        }
        let key = row.key();
        if let Some(error) = damage {
            out.changes.push(Change::PutError(key, error));
            self.end(slot, JobState::Failed, now, out);
        } else {
            self.requeue(slot, planted(Bug::ReadErrorCounted), &Loss::Reading, now, out);
            self.set_aside(slot, now);
        }
        true
    }

    fn set_aside(&mut self, slot: Slot, now: Millis) {
        let row = &self.jobs[slot];
        if row.state() == JobState::InQueue {
            let was_ready = self.ready.remove(row.low_priority(), row.order, slot);
            assert!(was_ready, "a job that has come back is ready");
            self.aside.put(row.low_priority(), row.order, slot, now);
        }
    }

    /// Lets a slice of the jobs whose time has come be handed out again. Answers how many.
    pub(crate) fn return_aside(&mut self, now: Millis, out: &mut Effects) -> usize {
        let mut done = 0;
        while done < SLICE_JOBS_MAX
            && let Some(slot) = self.aside.due(now)
        {
            let row = &self.jobs[slot];
            assert!(self.aside.remove(row.low_priority(), row.order, slot), "a job that is due is set aside");
            self.ready.insert(row.low_priority(), row.order, slot);
            done += 1;
        }
        if done > 0 {
            out.signals.push(Signal::JobReady);
            out.signals.push(Signal::LoadChanged);
        }
        done
    }
}
