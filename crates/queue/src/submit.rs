//! A client hands in a job.

use longshore_model::{JobKey, Millis};
use longshore_planted::{Bug, planted};

use crate::life::Place;
use crate::packed::PackedRow;
use crate::{Change, Effects, Queue, Refusal, Reply, Submit};

/// Sequence numbers are reserved in blocks of this size, so that the counters' row is not written every time.
const SEQ_BLOCK: u64 = 1024;

impl Queue {
    pub(crate) fn submit(&mut self, now: Millis, submit: Submit, out: &mut Effects) -> Reply {
        if let Some(known) = self.known(now, &submit) {
            return known;
        }
        if self.queued() >= self.settings.jobs_max || self.last_seq >= JobKey::SEQ_MAX {
            return Reply::Refused(Refusal::Full);
        }
        let row = self.row_of(now, submit);
        let key = row.key();
        let slot = self.jobs.insert(row);
        if let Some(idempotency) = self.jobs[slot].idempotency() {
            self.idempotent.insert(idempotency.key.clone(), slot);
        }
        self.enqueue(slot, Place::Back, now, out);
        self.schedule(slot);
        self.put(slot, out);
        out.changes.push(Change::KeepInput(key));
        Reply::Accepted(key)
    }

    /// The answer to a submit that came before: by its id (resent inside the cluster) or by the client's key.
    fn known(&self, now: Millis, submit: &Submit) -> Option<Reply> {
        if let Some(slot) = self.jobs.find(submit.id) {
            // Even a job past its time: the same id never makes a second one.
            return Some(Reply::Known(self.as_seen(&self.jobs[slot])));
        }
        let idempotency = submit.idempotency.as_ref()?;
        let slot = *self.idempotent.get(&idempotency.key)?;
        let same = planted(Bug::BodyNotCompared)
            || self.jobs[slot].idempotency().is_some_and(|i| i.fingerprint == idempotency.fingerprint);
        match self.visible(self.jobs[slot].id, now) {
            Some(row) if same => Some(Reply::Known(row)),
            Some(_) => Some(Reply::Refused(Refusal::KeyReused)),
            // The job that had the key is past its time and only waits for its sweep or its webhook.
            None => None,
        }
    }

    fn row_of(&mut self, now: Millis, submit: Submit) -> PackedRow {
        self.last_seq += 1;
        if self.last_seq > self.counters.reserved_seq {
            self.counters.reserved_seq = self.last_seq + SEQ_BLOCK;
        }
        let key = JobKey { endpoint: self.endpoint, seq: self.last_seq };
        PackedRow::submitted(key, now, submit, self.settings.execution_timeout_ms as u32)
    }
}
