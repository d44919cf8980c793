//! The verbs cancel and set-ttl: a client ends a job now, or chooses the time of its deletion.

use longshore_model::{JobId, JobRow, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::{Change, Effects, Queue, Refusal};

impl Queue {
    /// Cancels `job` and returns its row. A terminal job is returned unchanged. The worker of a running job gets a stop
    /// signal. A progress value is deleted; the chunks of the stream stay.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchJob`] for an unknown or expired id.
    pub fn cancel(&mut self, now: Millis, job: JobId, out: &mut Effects) -> Result<JobRow, Refusal> {
        let (Some(row), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Err(Refusal::NoSuchJob);
        };
        let ends_twice = row.state == JobState::Completed && planted(Bug::CancelAfterResult);
        if row.state.is_terminal() && !ends_twice {
            return Ok(row);
        }
        self.stop_holder(slot, now, out);
        // Deletes the progress value.
        out.changes.push(Change::ClearOutcome(row.key));
        self.end(slot, JobState::Cancelled, now, out);
        Ok(self.jobs.row(slot))
    }

    /// Sets the time of the job's deletion to `ttl_ms` milliseconds after `now`, and returns its row. The time also holds
    /// after the job has ended, in place of the retention. A client retry resets it.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchJob`] for an unknown or expired id.
    pub fn set_ttl(
        &mut self,
        now: Millis,
        job: JobId,
        ttl_ms: u64,
        out: &mut Effects,
    ) -> Result<JobRow, Refusal> {
        let (Some(_), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Err(Refusal::NoSuchJob);
        };
        self.unschedule(slot);
        let row = self.jobs[slot].extras_mut();
        row.delete_at = now + ttl_ms;
        row.ttl_pinned = true;
        self.schedule(slot);
        self.put(slot, out);
        // Not the stored row: a purged job is shown as cancelled while its row is still stored as queued.
        self.find_visible(job, now).ok_or(Refusal::NoSuchJob)
    }
}
