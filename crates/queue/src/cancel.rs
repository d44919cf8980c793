//! A client wants a job to end now, or at a time it chooses.

use longshore_model::{JobId, JobRow, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::{Change, Effects, Queue, Refusal};

impl Queue {
    /// Cancels `job` and returns its row. A terminal job is returned unchanged. Its worker, if any, gets a stop signal.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchJob`] for an unknown or expired id.
    pub fn cancel(&mut self, now: Millis, job: JobId, out: &mut Effects) -> Result<JobRow, Refusal> {
        let (Some(row), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Err(Refusal::NoSuchJob);
        };
        let reopens = row.state == JobState::Completed && planted(Bug::CancelAfterResult);
        if row.state.is_terminal() && !reopens {
            return Ok(row);
        }
        self.stop_holder(slot, now, out);
        // A progress value is no result.
        out.changes.push(Change::ClearOutcome(row.key));
        self.end(slot, JobState::Cancelled, now, out);
        Ok(self.jobs.row(slot))
    }

    /// Sets the time of the job's deletion to `ttl_ms` milliseconds after `now`, and returns its row.
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
        // A purged job is shown as cancelled although its row still says that it waits.
        self.find_visible(job, now).ok_or(Refusal::NoSuchJob)
    }
}
