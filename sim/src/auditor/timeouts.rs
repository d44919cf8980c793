//! What must have ended by itself: attempts past their timeout, and attempts of lost workers.

use super::Auditor;
use super::job::{Delivery, Job, WorkerNo};
use super::job_view::{JobView, history};
use super::outages::SLACK_MS;
use super::promise::Promise;
use super::time_bounds::EventTime;

/// Longest delay of a timeout, in ms. Slow disks are no excuse for more.
const OVERDUE_MS: u64 = 30_000;

impl Auditor {
    /// A job was observed running.
    pub(super) fn check_overdue(&mut self, view: &JobView) {
        let Some(job) = self.model.get(view.job).filter(|job| job.retries.is_empty()) else { return };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let Some(holder) = job.deliveries.last() else { return };
        let is_certain = holder.got.seq >= job.cycle.began.0.seq
            && holder.got.seq < view.from.seq
            && endpoint.unknown_takes(holder.got, self.ledger.now) == 0
            && !endpoint.may_be_deleted(self.ledger.now);
        if !is_certain {
            return;
        }
        let text = || format!("{} runs on in {}; {}", job.id, view.what, history(job));
        let is_too_long = self.is_past_timeout(job, holder, view.from);
        let is_lost = self.is_silent_since(holder.worker, holder.got, view.from)
            || self.is_missed_since(holder, view.from);
        self.ledger.check(Promise::TimedOut, !is_too_long, text);
        self.ledger.check(Promise::LeaseEnds, !is_lost, text);
    }

    /// A job has completed with a result that was posted no earlier than `posted`.
    pub(super) fn check_in_time(&mut self, view: &JobView, posted: EventTime) {
        let Some(job) = self.model.get(view.job).filter(|job| job.retries.is_empty()) else { return };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let Some(holder) = job.deliveries.last() else { return };
        let is_certain = holder.got.seq >= job.cycle.began.0.seq
            && holder.got.seq < posted.seq
            && endpoint.unknown_takes(holder.got, self.ledger.now) == 0;
        // A requeued job is not running, and a late result counts.
        let (evidence, denied) = (holder.evidence, self.model.workers[holder.worker.0].denied);
        let is_queued = job.cycle.seen_queued.is_some_and(|(_, seen)| seen.seq > holder.got.seq);
        let is_held = !is_queued
            && !self.is_silent(holder.worker, self.rules.lease_ms())
            && !evidence.silent
            && !evidence.failed
            && evidence.ended.is_none()
            && holder.unlisted < 2
            && denied.is_none_or(|denied| denied.seq <= holder.asked.seq);
        let is_too_long = is_certain && is_held && self.is_past_timeout(job, holder, posted);
        let text = || format!("{} completed at {} ms; {}", job.id, posted.ms, history(job));
        self.ledger.check(Promise::TimedOut, !is_too_long, text);
    }

    fn is_past_timeout(&self, job: &Job, holder: &Delivery, at: EventTime) -> bool {
        let Some(submission) = &job.submission else { return false };
        let settings = &self.model.endpoints[job.endpoint.0].settings;
        let timeout_ms = submission.execution_timeout_ms.unwrap_or(settings.execution_timeout_ms.high);
        // The server's clock may have been ahead at the start of the attempt and waiting for the wall clock since.
        let began_ms = self.clock.most(holder.got, holder.got);
        at.wall_ms >= began_ms + timeout_ms + OVERDUE_MS
            && at.ms >= holder.got.ms + OVERDUE_MS
            && self.is_outage_free(at.ms - OVERDUE_MS, at.ms)
    }

    /// Whether the server must have noticed by then that the worker has been silent since its last request.
    pub(super) fn is_silent_since(&self, worker: WorkerNo, known: EventTime, until: EventTime) -> bool {
        let within_ms = self.rules.lease_ms() + self.rules.kill_grace_ms + SLACK_MS;
        let worker = &self.model.workers[worker.0];
        let last_success =
            worker.last_request.max(self.process_began).map_or(known, |last_success| last_success.max(known));
        // A worker that does not ping may be silent. The server forgets which workers ping at every
        // outage, and at the loss of a worker.
        let pings = worker.pings[0].is_some_and(|ping| {
            self.is_outage_free(ping.from.ms, until.ms)
                && worker.silent.is_none_or(|silent| silent.seq <= ping.from.seq)
        });
        // The server's clock may be ahead of the wall clock and waiting for it.
        pings
            && until.ms > last_success.ms + within_ms
            && until.wall_ms > self.clock.most(last_success, last_success) + within_ms
    }

    /// Whether this worker had its job when the server process started, and sent no request to it. After a start,
    /// every running job has one lease.
    fn is_missed_since(&self, holder: &Delivery, until: EventTime) -> bool {
        let Some(began) = self.process_began.filter(|began| began.seq > holder.got.seq) else { return false };
        let within_ms = self.rules.lease_ms() + SLACK_MS;
        let has_no_request = self.model.workers[holder.worker.0]
            .last_request
            .is_none_or(|last_request| last_request.seq < began.seq);
        has_no_request
            && self.is_outage_free(began.ms + 1, until.ms)
            && until.ms > began.ms + within_ms
            && until.wall_ms > self.clock.most(began, began) + within_ms
    }
}
