//! The verb retry: a client lets a failed or timed-out job run again.

use longshore_model::{JobId, JobRow, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::transitions::QueueEnd;
use crate::{Change, Effects, Queue, Refusal};

impl Queue {
    /// Requeues a failed or timed-out job at the back, and returns its row.
    ///
    /// The attempt number stays. Retries, redeliveries and the ttl restart. The outcome, the stream and a pending webhook
    /// call are deleted. A full queue does not refuse a retry.
    ///
    /// # Errors
    ///
    /// - [`Refusal::NoSuchJob`]: the id is unknown or the job has expired.
    /// - [`Refusal::NotRetryable`]: the job is in another state.
    pub fn retry(&mut self, now: Millis, job: JobId, out: &mut Effects) -> Result<JobRow, Refusal> {
        let (Some(row), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Err(Refusal::NoSuchJob);
        };
        if !matches!(row.state, JobState::Failed | JobState::TimedOut) {
            return Err(Refusal::NotRetryable);
        }
        self.unschedule(slot);
        self.ended.remove(row.state, job, slot);
        let (key, ttl_ms) = (row.key, row.ttl_ms);
        let row = self.jobs[slot].extras_mut();
        row.never_taken = true;
        row.ttl_pinned = false;
        row.retries = 0;
        row.redeliveries = 0;
        row.worker = None;
        row.set_retried(now);
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
        self.jobs.forget_attempt(slot);
        self.jobs.set_gpu(slot, None);
        self.enqueue(slot, QueueEnd::Back, now, out);
        self.schedule(slot);
        self.put(slot, out);
        Ok(self.jobs.row(slot))
    }
}
