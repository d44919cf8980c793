//! A client hands in a job.

use longshore_model::{JobKey, KeyId, Millis};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::packed::PackedRow;
use crate::transitions::QueueEnd;
use crate::{Change, Effects, Queue, Refusal, Reply, Submit};

/// Sequence numbers are reserved in blocks of this size, so that the counters' row is not written every time.
const SEQ_BLOCK: u64 = 1024;

impl Queue {
    pub(crate) fn submit(&mut self, now: Millis, submit: Submit, out: &mut Effects) -> Reply {
        if let Some(known) = self.known(now, &submit) {
            return known;
        }
        if self.queued() >= self.settings.jobs_max || self.last_seq >= JobKey::SEQ_MAX {
            return Reply::Refused(Refusal::QueueFull);
        }
        let has_promise = submit.idempotency.is_some();
        let row = self.row_of(now, submit);
        let key = row.key();
        let slot = self.jobs.insert(row);
        // Asked first, as few submits have one.
        if has_promise && let Some(promise) = self.jobs.promise(slot) {
            self.idempotent.insert(promise, slot);
        }
        self.enqueue(slot, QueueEnd::Back, now, out);
        self.schedule(slot);
        self.put(slot, out);
        out.changes.push(Change::PutInput(key));
        Reply::Accepted(key)
    }

    /// The answer to a submit that came before: by its id (resent inside the cluster) or by the client's key.
    fn known(&self, now: Millis, submit: &Submit) -> Option<Reply> {
        if let Some(slot) = self.jobs.find(submit.id) {
            // Even a job past its time: the same id never makes a second one.
            return Some(Reply::Known(self.as_seen(slot)));
        }
        let idempotency = submit.idempotency.as_ref()?;
        let is_same = |slot: Slot| {
            self.jobs[slot].idempotency().is_some_and(|i| i.fingerprint == idempotency.fingerprint)
        };
        let find = |key: Option<KeyId>| self.idempotent.find(&(key, idempotency.key.clone()));
        // Of a job from before API keys were noted, the same body is proof enough: it is a submit sent again while the
        // server was replaced by a newer one.
        let unknown = || find(None).filter(|slot| is_same(*slot));
        let slot = find(submit.submitter.key).or_else(unknown)?;
        let same = planted(Bug::BodyNotCompared) || is_same(slot);
        match self.find_visible(self.jobs[slot].id, now) {
            Some(row) if same => Some(Reply::Known(row)),
            Some(_) => Some(Reply::Refused(Refusal::IdempotencyKeyReused)),
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
        let by = self.jobs.submitters.enter(submit.submitter);
        PackedRow::submitted(key, now, submit, by, self.settings.execution_timeout_ms as u32)
    }
}
