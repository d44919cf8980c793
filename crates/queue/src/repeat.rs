//! A client wants the receiver of a job's webhook to be told again.

use longshore_model::{End, JobId, Millis};

use crate::{Change, Effects, Queue, Refusal, Reply, Signal};

impl Queue {
    /// A call that is owed already stays as it is: it is on its way.
    pub(crate) fn repeat_webhook(&mut self, now: Millis, job: JobId, end: End, out: &mut Effects) -> Reply {
        let (Some(_), Some(slot)) = (self.visible(job, now), self.jobs.find(job)) else {
            return Reply::Refused(Refusal::NoSuchJob);
        };
        let row = self.jobs.row(slot);
        if !row.webhook || row.end() != Some(end) {
            return Reply::Refused(Refusal::NotRepeatable);
        }
        if !row.webhook_owed {
            self.unschedule(slot);
            self.jobs[slot].changed().webhook_owed = true;
            self.schedule(slot);
            out.changes.push(Change::OweHook(row.key));
            out.signals.push(Signal::Webhook(job, row.key, end));
            self.put(slot, out);
        }
        Reply::Job(self.jobs.row(slot))
    }
}
