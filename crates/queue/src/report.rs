//! The verbs report, progress and append: a worker reports on a job that it holds, or held.

use longshore_model::{Attempt, AttemptEnd, JobId, JobKey, JobState, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::transitions::RequeueCause;
use crate::{Change, Effects, Queue};

/// Why an attempt whose handler reported an error ended. The job's outcome has the error.
const HANDLER_FAILED: &str = "the handler reported an error";

/// The result that a worker reports, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The handler returned an output, or nothing.
    Completed {
        /// Size of the output, in bytes; 0 without an output.
        output_bytes: u64,
    },
    /// The handler reported an error. The caller has the text.
    Failed,
}

impl Queue {
    /// Ends a job with the worker's report, and returns the job's key. An output above the limit ends the job as failed.
    /// `None` if the report ended no job: it did not count, or the job was requeued because of the reported error.
    ///
    /// A report counts if the worker holds the job and the job has not expired. The output of a worker that does not hold
    /// the job counts too, if it is within the limit and the job is not terminal, expired or purged, and was delivered
    /// since its submit or client retry.
    ///
    /// Renews the lease of a known worker, and confirms the stop of the job.
    pub fn report(
        &mut self,
        now: Millis,
        worker: &WorkerId,
        job: JobId,
        report: Report,
        out: &mut Effects,
    ) -> Option<JobKey> {
        let slot = self.jobs.find(job);
        let is_holder = slot.is_some_and(|slot| self.is_held_by(slot, worker));
        let counts = slot.is_some_and(|slot| self.accepts(slot, is_holder, report, now));
        let alone_since = self.workers.touch_known(worker, now).and_then(|known| {
            known.jobs_done += u64::from(counts);
            known.confirm_stops(|stopped| stopped == job)
        });
        out.stop_confirmed(now, worker, alone_since);
        let slot = slot?;
        if !counts {
            if is_holder {
                // The job has expired. Deleted here, because a tick would also send a stop signal to the worker.
                self.remove(slot, now, out);
            }
            return None;
        }
        if !is_holder {
            // A late result of a lost worker ends the job. The present holder is to stop.
            self.stop_holder(slot, now, out);
        }
        let key = self.jobs[slot].key();
        match report {
            Report::Completed { output_bytes } => {
                if !is_holder {
                    self.credit_reporter(slot, worker, now);
                }
                if let Some(error) = self.too_large(slot, output_bytes) {
                    self.put_attempt(slot, AttemptEnd::Failed, &error, now, out);
                    out.changes.push(Change::PutError(key, error));
                    self.end(slot, JobState::Failed, now, out);
                } else {
                    out.changes.push(Change::PutOutcome(key));
                    self.end(slot, JobState::Completed, now, out);
                }
            }
            Report::Failed if self.retries_errors(slot) => {
                let cause = RequeueCause::AttemptEnded(AttemptEnd::Failed, HANDLER_FAILED);
                self.requeue(slot, true, &cause, now, out);
                return None;
            }
            Report::Failed => {
                self.put_attempt(slot, AttemptEnd::Failed, HANDLER_FAILED, now, out);
                out.changes.push(Change::PutOutcome(key));
                self.end(slot, JobState::Failed, now, out);
            }
        }
        Some(key)
    }

    /// Replaces the job's progress value, and returns the key under which it is to be stored. `None` if the worker does not
    /// hold the job or the job has expired. Renews the lease of a known worker, and confirms the delivery.
    pub fn progress(
        &mut self,
        now: Millis,
        worker: &WorkerId,
        job: JobId,
        out: &mut Effects,
    ) -> Option<JobKey> {
        let slot = self.confirm(now, worker, job)?;
        let key = self.jobs[slot].key();
        self.jobs.add_progress(slot, now.since(self.jobs[slot].started_at()));
        out.changes.push(Change::PutOutcome(key));
        Some(key)
    }

    /// Permits the worker to append chunks to the job's stream: returns the key of the job and its present attempt. `None`
    /// if the worker does not hold the job or the job has expired. Renews the lease of a known worker, and confirms the
    /// delivery. The first time of an attempt is written into the job's row.
    pub fn append(
        &mut self,
        now: Millis,
        worker: &WorkerId,
        job: JobId,
        out: &mut Effects,
    ) -> Option<(JobKey, Attempt)> {
        let slot = self.confirm(now, worker, job)?;
        if self.jobs.first_chunk_at(slot).is_none() {
            self.jobs.set_first_chunk_at(slot, Some(now));
            self.put(slot, out);
        }
        Some((self.jobs[slot].key(), self.jobs[slot].attempt()))
    }

    /// Confirms the delivery of a job that the worker holds, and returns its slot. `None` if the worker does not hold it, or
    /// it has expired.
    fn confirm(&mut self, now: Millis, worker: &WorkerId, job: JobId) -> Option<Slot> {
        let worker = self.workers.touch_known(worker, now)?;
        let slot = self.jobs.find(job)?;
        let held = worker.holds(slot)?;
        (held.confirmed, held.missed) = (true, 0);
        (now < self.jobs[slot].delete_at()).then_some(slot)
    }

    /// Whether a report counts. The holder's counts unless the job has expired. Another worker's counts only if it is the
    /// output of an earlier attempt, within the limit: a failed report would end a job that its holder may complete.
    fn accepts(&self, slot: Slot, is_holder: bool, report: Report, now: Millis) -> bool {
        let row = &self.jobs[slot];
        let ends_twice = row.state() == JobState::Cancelled && planted(Bug::ResultAfterCancel);
        if (row.state().is_terminal() && !ends_twice) || row.delete_at() <= now || self.is_purged(row) {
            return false;
        }
        let good = match report {
            Report::Completed { output_bytes } => output_bytes <= self.output_bytes_max(slot),
            Report::Failed => false,
        };
        let never_taken = row.never_taken() && !planted(Bug::UntakenResultAccepted);
        is_holder || (good && !never_taken)
    }

    /// Whether this worker runs the job, according to the job's row.
    pub(crate) fn is_held_by(&self, slot: Slot, worker: &WorkerId) -> bool {
        let row = &self.jobs[slot];
        row.state() == JobState::InProgress && row.worker() == Some(worker)
    }

    fn retries_errors(&self, slot: Slot) -> bool {
        self.settings.retry_handler_errors && self.jobs[slot].retries() < self.settings.max_retries
    }

    /// Writes the worker whose late result counts into the row. If another worker runs the job, releases it from that
    /// worker first: `end` would look for the job at the worker that the row names.
    fn credit_reporter(&mut self, slot: Slot, worker: &WorkerId, now: Millis) {
        let row = &mut self.jobs[slot];
        let (state, row) = (row.state(), row.extras_mut());
        let holder = row.worker.replace(worker.clone());
        if state == JobState::InQueue {
            // The requeue reset the start of the reporter's attempt. The time of the requeue is used instead.
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
