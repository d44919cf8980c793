//! An unreadable job breaks the take response that contains it, and must not fail the other jobs of the response.

use super::Auditor;
use super::job_view::{JobView, history};
use super::promise::Promise;

impl Auditor {
    /// A job was shown as failed. The promise is broken if every delivery of the job came with an unreadable one.
    pub(super) fn check_fails_alone(&mut self, view: &JobView) {
        let Some(job) = self.model.get(view.job) else { return };
        let certain = |at: u64| at >= job.cycle.began.1.seq || job.retries_done == 0;
        let deliveries = job.deliveries.iter().filter(|delivery| certain(delivery.asked.seq));
        let (mut with_unreadable, mut others) = (0, 0);
        for delivery in deliveries {
            // A worker that the server ended releases its jobs without a trace, and a ping may list any jobs.
            let is_doubtful =
                delivery.confirmed || delivery.evidence.ended.is_some_and(|(_, by_server)| by_server);
            if delivery.with_unreadable && !is_doubtful { with_unreadable += 1 } else { others += 1 }
        }
        let is_failed_by_handler = !job.posts.is_empty() || !job.chunks.is_empty();
        if others > 0 || is_failed_by_handler {
            return;
        }
        let text = || {
            format!(
                "{} failed, never handed out but beside one that cannot be read; {}",
                job.id,
                history(job)
            )
        };
        self.ledger.check(Promise::FailsAlone, with_unreadable < 2, text);
    }
}
