//! The verb undelivered: the job was not sent to the worker, because its input could not be read or the worker had disconnected.

use alloc::string::String;

use longshore_model::{Attempt, AttemptEnd, JobId, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::queue::SLICE_JOBS_MAX;
use crate::transitions::RequeueCause;
use crate::{Change, Effects, Queue, Signal};

impl Queue {
    /// Requeues the job at its previous position and defers it, for 1 s after its first failed read up to 30 s. This counts
    /// as no retry. With `damage` the input cannot be recovered, and the job fails with this error.
    ///
    /// Returns `false`, and changes nothing, if the job is not running in this attempt or has expired.
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
            return false;
        }
        let key = row.key();
        if let Some(error) = damage {
            self.put_attempt(slot, AttemptEnd::Undelivered, &error, now, out);
            out.changes.push(Change::PutError(key, error));
            self.end(slot, JobState::Failed, now, out);
        } else {
            self.requeue(slot, planted(Bug::ReadErrorCounted), &RequeueCause::Unreadable, now, out);
            self.defer(slot, now);
        }
        true
    }

    /// Defers a job that was just requeued. A planted mistake may have ended the job instead.
    fn defer(&mut self, slot: Slot, now: Millis) {
        let row = &self.jobs[slot];
        if row.state() == JobState::InQueue {
            let was_ready = self.ready.remove(row.low_priority(), row.order, slot);
            assert!(was_ready, "a requeued job is ready");
            self.deferred.insert(row.low_priority(), row.order, slot, now);
        }
    }

    /// Makes a slice of the deferred jobs ready whose retry time has passed. Returns their number, at most
    /// [`SLICE_JOBS_MAX`].
    pub(crate) fn retry_deferred(&mut self, now: Millis, out: &mut Effects) -> usize {
        let mut done = 0;
        while done < SLICE_JOBS_MAX
            && let Some(slot) = self.deferred.first_due(now)
        {
            let row = &self.jobs[slot];
            assert!(self.deferred.remove(row.low_priority(), row.order, slot), "a due job is deferred");
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
