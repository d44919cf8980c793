//! The verb submit: a client submits a job.

use alloc::boxed::Box;

use longshore_model::{Idempotency, JobId, JobKey, JobRow, KeyId, Millis, Submitter, TraceContext};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::packed::PackedRow;
use crate::transitions::QueueEnd;
use crate::{Change, Effects, Queue, Refusal};

/// Sequence numbers reserved at a time, so that few submits write the row of the counters.
const SEQ_BLOCK: u64 = 1024;

/// A submitted job, without its input.
#[derive(Clone, Debug)]
pub struct Submit {
    /// Generated at the edge. A second submit with the same id returns the same job.
    pub id: JobId,
    /// Size of the input, in bytes.
    pub input_bytes: u32,
    /// The job never causes a worker to start.
    pub low_priority: bool,
    /// A webhook call becomes pending at each end of the job.
    pub webhook: bool,
    /// `policy.executionTimeout`, in ms; `None`: the endpoint's execution timeout.
    pub execution_timeout_ms: Option<u32>,
    /// `policy.ttl`, in ms; `None`: 24 hours.
    pub ttl_ms: Option<u32>,
    /// The `Idempotency-Key` header with a fingerprint of the body; `None` without the header.
    pub idempotency: Option<Box<Idempotency>>,
    /// The API key of the request and its owner.
    pub submitter: Submitter,
    /// The client's trace; `None` without one.
    pub trace: Option<Box<TraceContext>>,
}

/// The result of a submit that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// A new job with the submitted id. Its row has this key.
    New(JobKey),
    /// The job of an earlier submit with the same id or `Idempotency-Key`. Boxed: rare, and a large row.
    Existing(Box<JobRow>),
}

impl Queue {
    /// Adds a job at the back of the queue, or returns the job of an earlier submit with the same id or `Idempotency-Key`.
    /// An earlier job is returned even if the queue is full.
    ///
    /// # Errors
    ///
    /// - [`Refusal::IdempotencyKeyReused`]: an earlier job has the same `Idempotency-Key` and another body.
    /// - [`Refusal::QueueFull`]: `jobs_max` jobs are queued, or all sequence numbers are used.
    pub fn submit(&mut self, now: Millis, submit: Submit, out: &mut Effects) -> Result<Submitted, Refusal> {
        if let Some(existing) = self.find_existing(now, &submit) {
            return existing.map(|row| Submitted::Existing(Box::new(row)));
        }
        if self.queued() >= self.settings.jobs_max || self.last_seq >= JobKey::SEQ_MAX {
            return Err(Refusal::QueueFull);
        }
        let has_idempotency_key = submit.idempotency.is_some();
        let (row, trace) = self.new_row(now, submit);
        let key = row.key();
        let slot = self.jobs.insert(row);
        if let Some(trace) = trace {
            self.jobs.set_trace(slot, *trace);
        }
        // Tested first: few submits have a key.
        if has_idempotency_key && let Some(key) = self.jobs.idempotency_key(slot) {
            self.idempotency.insert(key, slot);
        }
        self.enqueue(slot, QueueEnd::Back, now, out);
        self.schedule(slot);
        self.put(slot, out);
        out.changes.push(Change::PutInput(key));
        Ok(Submitted::New(key))
    }

    /// Returns the job of an earlier submit with the same id or `Idempotency-Key`, or the refusal of a reused key. `None`: a
    /// new job is to be added.
    fn find_existing(&self, now: Millis, submit: &Submit) -> Option<Result<JobRow, Refusal>> {
        if let Some(slot) = self.jobs.find(submit.id) {
            // An expired job too: an id never names two jobs.
            return Some(Ok(self.visible_row(slot)));
        }
        let idempotency = submit.idempotency.as_ref()?;
        let is_same = |slot: Slot| {
            self.jobs[slot].idempotency().is_some_and(|i| i.fingerprint == idempotency.fingerprint)
        };
        let find = |key: Option<KeyId>| self.idempotency.find(&(key, idempotency.key.clone()));
        // A row of an older version names no API key. Such a job matches by text and body, for a submit that is repeated
        // after an upgrade of the server (ADR 0015).
        let without_api_key = || find(None).filter(|slot| is_same(*slot));
        let slot = find(submit.submitter.key).or_else(without_api_key)?;
        let same = planted(Bug::BodyNotCompared) || is_same(slot);
        match self.find_visible(self.jobs[slot].id, now) {
            Some(row) if same => Some(Ok(row)),
            Some(_) => Some(Err(Refusal::IdempotencyKeyReused)),
            // The job with the key has expired. Its row is stored until a tick deletes it or its webhook call is settled.
            None => None,
        }
    }

    /// Assigns the next sequence number, and returns the row of the job before it is queued, and its trace.
    fn new_row(&mut self, now: Millis, mut submit: Submit) -> (PackedRow, Option<Box<TraceContext>>) {
        self.last_seq += 1;
        if self.last_seq > self.counters.reserved_seq {
            self.counters.reserved_seq = self.last_seq + SEQ_BLOCK;
        }
        let key = JobKey { endpoint: self.endpoint, seq: self.last_seq };
        let by = self.jobs.submitters.add_job(submit.submitter);
        let trace = submit.trace.take();
        (PackedRow::submitted(key, now, submit, by, self.settings.execution_timeout_ms as u32), trace)
    }
}
