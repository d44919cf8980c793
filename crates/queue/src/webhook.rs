//! The webhook verbs: a client repeats a webhook call, and the engine settles one.

use longshore_model::{JobEnd, JobId, JobRow, Millis};

use crate::{Change, Effects, Queue, Refusal, Signal};

impl Queue {
    /// Makes the webhook call of this end pending again, and returns the job's row. If the call is pending already, nothing
    /// changes.
    ///
    /// # Errors
    ///
    /// - [`Refusal::NoSuchJob`]: the id is unknown or the job has expired.
    /// - [`Refusal::WebhookNotRedeliverable`]: the job has no webhook, or `end` is not its present end.
    pub fn redeliver_webhook(
        &mut self,
        now: Millis,
        job: JobId,
        end: JobEnd,
        out: &mut Effects,
    ) -> Result<JobRow, Refusal> {
        let (Some(_), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Err(Refusal::NoSuchJob);
        };
        let row = self.jobs.row(slot);
        if !row.webhook || row.end() != Some(end) {
            return Err(Refusal::WebhookNotRedeliverable);
        }
        if !row.webhook_pending {
            self.unschedule(slot);
            self.jobs[slot].extras_mut().webhook_pending = true;
            self.schedule(slot);
            out.changes.push(Change::PutWebhook(row.key));
            out.signals.push(Signal::WebhookDue(job, row.key, end));
            self.put(slot, out);
        }
        Ok(self.jobs.row(slot))
    }

    /// Settles the webhook call of this end: the receiver accepted it, or no attempt is left. Nothing changes if the call is
    /// not pending, the id is unknown, or the job was retried since that end.
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
