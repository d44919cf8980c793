//! A client hands in a job.

use alloc::boxed::Box;

use longshore_model::{Idempotency, JobId, JobKey, JobRow, KeyId, Millis, Submitter};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::packed::PackedRow;
use crate::transitions::QueueEnd;
use crate::{Change, Effects, Queue, Refusal};

/// Sequence numbers are reserved in blocks of this size, so that the counters' row is not written every time.
const SEQ_BLOCK: u64 = 1024;

/// A job as it is handed in. Its payload stays outside.
#[derive(Clone, Debug)]
pub struct Submit {
    /// Minted at the edge: the same id again is the same job.
    pub id: JobId,
    /// Size of the input.
    pub input_bytes: u32,
    /// The job never causes a worker to start.
    pub low_priority: bool,
    /// A webhook call becomes pending at the job's end.
    pub webhook: bool,
    /// From the job's policy; none means the endpoint's.
    pub execution_timeout_ms: Option<u32>,
    /// From the job's policy; none means 24 hours.
    pub ttl_ms: Option<u32>,
    /// The client's `Idempotency-Key`, with a fingerprint of the body; none if the request had none.
    pub idempotency: Option<Box<Idempotency>>,
    /// The client's key and its owner.
    pub submitter: Submitter,
}

/// What a submit that was not refused leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A new job, under the id that it came with.
    New(JobKey),
    /// The same submit came before; this is its job. Boxed, as it is rare and long.
    Existing(Box<JobRow>),
}

impl Queue {
    /// Puts a new job into the queue; or finds the one of an earlier submit with the same id or `Idempotency-Key`.
    ///
    /// # Errors
    ///
    /// [`Refusal::IdempotencyKeyReused`] if the key came before with another body, [`Refusal::QueueFull`] if the queue is full.
    pub fn submit(&mut self, now: Millis, submit: Submit, out: &mut Effects) -> Result<Submitted, Refusal> {
        if let Some(known) = self.known(now, &submit) {
            return known.map(|row| Submitted::Existing(Box::new(row)));
        }
        if self.queued() >= self.settings.jobs_max || self.last_seq >= JobKey::SEQ_MAX {
            return Err(Refusal::QueueFull);
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
        Ok(Submitted::New(key))
    }

    /// The job of a submit that came before: by its id (resent inside the cluster) or by the client's key.
    fn known(&self, now: Millis, submit: &Submit) -> Option<Result<JobRow, Refusal>> {
        if let Some(slot) = self.jobs.find(submit.id) {
            // Even a job past its time: the same id never makes a second one.
            return Some(Ok(self.as_seen(slot)));
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
            Some(row) if same => Some(Ok(row)),
            Some(_) => Some(Err(Refusal::IdempotencyKeyReused)),
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
