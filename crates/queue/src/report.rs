//! A worker reports on a job it holds, or held.

use longshore_model::{Attempt, JobId, JobKey, JobState, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::transitions::Loss;
use crate::{Change, Effects, Queue};

/// What a worker says came out of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// A result of this many bytes (0 for none).
    Completed {
        /// Size of the output.
        output_bytes: u64,
    },
    /// The handler failed; its error text travels outside the queue.
    Failed,
}

impl Queue {
    /// Ends a job with what its worker reports, and returns its key. `None` if the report does not count: the worker does
    /// not hold the job, or the job is terminal, expired or retried. The worker is answered as if it counted.
    pub fn report(
        &mut self,
        now: Millis,
        worker: &WorkerId,
        job: JobId,
        report: Report,
        out: &mut Effects,
    ) -> Option<JobKey> {
        // A report on a job that it was told to stop lets go of it.
        let known = self.workers.touch_known(worker, now);
        let alone_since = known.and_then(|worker| worker.lets_go(|stopped| stopped == job));
        out.let_go(now, worker, alone_since);
        let slot = self.jobs.find(job)?;
        let is_holder = self.is_held_by(slot, worker);
        if !self.accepts(slot, is_holder, report, now) {
            if is_holder {
                // Past its time. Gone now, before a sweep tells the worker to stop what it just finished.
                self.remove(slot, now, out);
            }
            return None;
        }
        if !is_holder {
            // A late result of a lost worker: the first good one wins, and whoever runs it now can stop.
            self.stop_holder(slot, now, out);
        }
        let key = self.jobs[slot].key();
        match report {
            Report::Completed { output_bytes } => {
                if !is_holder {
                    self.credit_reporter(slot, worker, now);
                }
                if let Some(error) = self.too_large(slot, output_bytes) {
                    out.changes.push(Change::PutError(key, error));
                    self.end(slot, JobState::Failed, now, out);
                } else {
                    out.changes.push(Change::PutOutcome(key));
                    self.end(slot, JobState::Completed, now, out);
                }
            }
            Report::Failed if self.retries_errors(slot) => {
                self.requeue(slot, true, &Loss::Worker("its handler reported an error"), now, out);
                return None;
            }
            Report::Failed => {
                out.changes.push(Change::PutOutcome(key));
                self.end(slot, JobState::Failed, now, out);
            }
        }
        Some(key)
    }

    /// Replaces the job's progress value, and returns its key. `None` if the worker does not hold the job.
    pub fn progress(
        &mut self,
        now: Millis,
        worker: &WorkerId,
        job: JobId,
        out: &mut Effects,
    ) -> Option<JobKey> {
        let slot = self.confirm(now, worker, job)?;
        let key = self.jobs[slot].key();
        out.changes.push(Change::PutOutcome(key));
        Some(key)
    }

    /// The right to append to the job's stream, for this attempt. `None` if the worker does not hold the job.
    pub fn append(&mut self, now: Millis, worker: &WorkerId, job: JobId) -> Option<(JobKey, Attempt)> {
        let slot = self.confirm(now, worker, job)?;
        Some((self.jobs[slot].key(), self.jobs[slot].attempt()))
    }

    /// The job, if this worker holds it; then it has also shown that the job arrived.
    fn confirm(&mut self, now: Millis, worker: &WorkerId, job: JobId) -> Option<Slot> {
        let worker = self.workers.touch_known(worker, now)?;
        let slot = self.jobs.find(job)?;
        let held = worker.holds(slot)?;
        (held.confirmed, held.missed) = (true, 0);
        (now < self.jobs[slot].delete_at()).then_some(slot)
    }

    /// Whether a report may end the job. The holder's always does; a stranger's only as a good result of an
    /// earlier attempt. One that is too large is none: it would fail a job that another worker may complete.
    fn accepts(&self, slot: Slot, is_holder: bool, report: Report, now: Millis) -> bool {
        let row = &self.jobs[slot];
        let reopens = row.state() == JobState::Cancelled && planted(Bug::ResultAfterCancel);
        if (row.state().is_terminal() && !reopens) || row.delete_at() <= now || self.is_purged(row) {
            return false;
        }
        let good = match report {
            Report::Completed { output_bytes } => output_bytes <= self.output_bytes_max(slot),
            Report::Failed => false,
        };
        let fresh = row.never_taken() && !planted(Bug::UntakenResultAccepted);
        is_holder || (good && !fresh)
    }

    pub(crate) fn is_held_by(&self, slot: Slot, worker: &WorkerId) -> bool {
        let row = &self.jobs[slot];
        row.state() == JobState::InProgress && row.worker() == Some(worker)
    }

    fn retries_errors(&self, slot: Slot) -> bool {
        self.settings.retry_handler_errors && self.jobs[slot].retries() < self.settings.max_retries
    }

    /// The record names the worker whose result counts, and who is not the holder. That one is let go of first, while
    /// the row names it.
    fn credit_reporter(&mut self, slot: Slot, worker: &WorkerId, now: Millis) {
        let row = &mut self.jobs[slot];
        let (state, row) = (row.state(), row.extras_mut());
        let holder = row.worker.replace(worker.clone());
        if state == JobState::InQueue {
            // When the run that counts began was forgotten as the job went back: since then is known.
            row.started_at = row.enqueued_at;
        } else if let Some(holder) = holder {
            self.workers.release(&holder, slot, now, self.settings.lease_ms);
        }
    }

    fn output_bytes_max(&self, slot: Slot) -> u64 {
        if self.jobs[slot].id.is_sync() {
            self.settings.sync_output_bytes_max
        } else {
            self.settings.output_bytes_max
        }
    }

    fn too_large(&self, slot: Slot, output_bytes: u64) -> Option<alloc::string::String> {
        let max = self.output_bytes_max(slot);
        (output_bytes > max).then(|| {
            alloc::format!(
                "the output has {output_bytes} bytes, the limit is {max}: upload it to storage and return a link"
            )
        })
    }
}
