//! A client wants a failed or timed-out job to run again.

use longshore_model::{JobId, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::transitions::QueueEnd;
use crate::{Change, Effects, Queue, Refusal, Reply};

impl Queue {
    pub(crate) fn retry(&mut self, now: Millis, job: JobId, out: &mut Effects) -> Reply {
        let (Some(row), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Reply::Refused(Refusal::NoSuchJob);
        };
        if !matches!(row.state, JobState::Failed | JobState::TimedOut) {
            return Reply::Refused(Refusal::NotRetryable);
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
        Reply::Job(self.jobs.row(slot))
    }
}
