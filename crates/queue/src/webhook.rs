//! A client wants the receiver of a job's webhook to be told again.

use longshore_model::{JobEnd, JobId, JobRow, Millis};

use crate::{Change, Effects, Queue, Refusal, Signal};

impl Queue {
    /// Makes the webhook call of this end pending again, and returns the job's row. A call that is pending already stays
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`Refusal::NoSuchJob`] for an unknown or expired id, [`Refusal::WebhookNotRedeliverable`] if the job has no webhook or has been
    /// retried since that end.
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
}
