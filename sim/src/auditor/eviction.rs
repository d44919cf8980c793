//! Forgets jobs that were deleted long ago, to bound the memory of a long world.

use super::Auditor;
use super::job::JobNo;
use super::stop::Due;

/// Time after a job's certain deletion, in ms, after which no response in flight can show it.
const FORGOTTEN_AFTER_MS: u64 = 600_000;
/// The same for a job whose receiver may still be called, because calls wait for each other.
const CALLED_AFTER_MS: u64 = 3_600_000;
/// Interval of checks of a job, in ms.
const CHECK_INTERVAL_MS: u64 = 300_000;

impl Auditor {
    /// Checks the job at intervals until it can be forgotten.
    pub(super) fn schedule_forget(&mut self, no: JobNo) {
        self.due.insert((self.ledger.now.ms + CHECK_INTERVAL_MS, Due::Forget(no)));
    }

    /// Forgets the job if possible.
    pub(super) fn try_to_forget(&mut self, no: JobNo) {
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return };
        let is_deleted = self.model.endpoints[job.endpoint.0]
            .deleted
            .is_some_and(|span| span.until.is_some_and(|until| until.ms + FORGOTTEN_AFTER_MS < now.ms));
        let after_ms = if self.may_be_called(job) { CALLED_AFTER_MS } else { FORGOTTEN_AFTER_MS };
        let is_gone =
            job.gone.is_some_and(|gone| gone.ms + after_ms < now.ms) && !self.has_pending_webhook(job);
        let is_past =
            now.wall_ms > job.ttl.high_ms.saturating_add(after_ms) && !self.has_pending_webhook(job);
        let is_running = job.deliveries.iter().any(|delivery| {
            self.model.workers[delivery.worker.0].running.iter().any(|(running, _)| *running == no)
        });
        if is_deleted || (is_gone || is_past) && !is_running {
            self.model.forget(no);
        } else {
            self.schedule_forget(no);
        }
    }
}
