//! A client wants a failed or timed-out job to run again.

use longshore_model::{JobId, JobRow, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::transitions::QueueEnd;
use crate::{Change, Effects, Queue, Refusal};

impl Queue {
    /// Queues a failed or timed-out job again, behind all others, and returns its row. Its attempts go on counting; its
    /// retries, outcome and stream start anew.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchJob`] for an unknown or expired id, [`Refusal::NotRetryable`] in any other state.
    pub fn retry(&mut self, now: Millis, job: JobId, out: &mut Effects) -> Result<JobRow, Refusal> {
        let (Some(row), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Err(Refusal::NoSuchJob);
        };
        if !matches!(row.state, JobState::Failed | JobState::TimedOut) {
            return Err(Refusal::NotRetryable);
        }
        self.unschedule(slot);
        let (key, ttl_ms) = (row.key, row.ttl_ms);
        let row = self.jobs[slot].extras_mut();
        row.never_taken = true;
        row.ttl_pinned = false;
        row.retries = 0;
        row.redeliveries = 0;
        row.worker = None;
        if !planted(Bug::TtlNotRenewed) {
            row.delete_at = now + u64::from(ttl_ms);
        }
        if core::mem::take(&mut row.webhook_pending) {
            out.changes.push(Change::DeleteWebhook(key));
        }
        self.counters.retried = self.counters.retried.saturating_add(1);
        if !planted(Bug::OutcomeNotCleared) {
            out.changes.push(Change::ClearOutcome(key));
        }
        if !planted(Bug::StreamNotReset) {
            out.changes.push(Change::ResetStream(key));
        }
        self.enqueue(slot, QueueEnd::Back, now, out);
        self.schedule(slot);
        self.put(slot, out);
        Ok(self.jobs.row(slot))
    }
}
