//! Requests that wait for a job's end are answered when the job ends.

use super::Auditor;
use super::exchange::Exchange;
use super::job_view::history;
use super::operation::Operation;
use super::outages::SLACK_MS;
use super::promise::Promise;

impl Auditor {
    /// A request that waited for the end of this job was answered.
    pub(super) fn check_wait_answered(&mut self, exchange: &Exchange, job: &str) {
        if !matches!(exchange.operation, Operation::RunSync | Operation::StatusSync) {
            return;
        }
        let now = self.ledger.now;
        let (Some(no), Some(arrived)) = (self.model.find_job(job), exchange.arrived) else { return };
        let Some(job) = self.model.get(no).filter(|job| !job.is_void && job.retries.is_empty()) else {
            return;
        };
        let Some((over, why)) = job.cycle.over.filter(|(over, _)| over.seq < now.seq) else { return };
        let since_ms = over.ms.max(arrived.ms).max(job.cycle.began.1.ms);
        if !self.is_outage_free(since_ms, now.ms) {
            return;
        }
        let is_soon = since_ms + SLACK_MS >= now.ms;
        let text = || {
            let waited_ms = now.ms - since_ms;
            format!("{} answered {waited_ms} ms after {why}; {}", exchange.path, history(job))
        };
        self.ledger.check(Promise::WaitAnswered, is_soon, text);
    }
}
