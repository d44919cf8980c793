//! A client wants the receiver of a job's webhook to be told again.

use longshore_model::{JobEnd, JobId, Millis};

use crate::{Change, Effects, Queue, Refusal, Reply, Signal};

impl Queue {
    /// A call that is owed already stays as it is: it is on its way.
    pub(crate) fn redeliver_webhook(
        &mut self,
        now: Millis,
        job: JobId,
        end: JobEnd,
        out: &mut Effects,
    ) -> Reply {
        let (Some(_), Some(slot)) = (self.find_visible(job, now), self.jobs.find(job)) else {
            return Reply::Refused(Refusal::NoSuchJob);
        };
        let row = self.jobs.row(slot);
        if !row.webhook || row.end() != Some(end) {
            return Reply::Refused(Refusal::WebhookNotRedeliverable);
        }
        if !row.webhook_pending {
            self.unschedule(slot);
            self.jobs[slot].extras_mut().webhook_pending = true;
            self.schedule(slot);
            out.changes.push(Change::PutWebhook(row.key));
            out.signals.push(Signal::WebhookDue(job, row.key, end));
            self.put(slot, out);
        }
        Reply::Job(self.jobs.row(slot))
    }
}
