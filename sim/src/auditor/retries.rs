//! Retries count the workers that a job has lost.

use super::Auditor;
use super::job::{Delivery, Job, Loss, WorkerNo};
use super::job_view::{JobView, history};
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::transitions::Transition;

/// Unconfirmed deliveries that are not counted as retries. Further ones count, so that a job that breaks every
/// response fails in the end.
const UNDELIVERED_MAX: usize = 3;

impl Auditor {
    /// A job's retries were shown.
    pub(super) fn check_retries(&mut self, view: &JobView, retries: u64) {
        let Some(job) = self.model.get(view.job) else { return };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let latest = job.deliveries.last().map(|delivery| delivery.got);
        let most = self.losses_most(job);
        let text = || {
            format!("{}: {retries} retries in {}, at most {most} losses; {}", job.id, view.what, history(job))
        };
        self.ledger.check(Promise::RetriesCounted, retries <= most, text);
        let most = endpoint.settings.max_retries.high;
        let text = || format!("{}: {retries} retries in {}, at most {most} may be", job.id, view.what);
        self.ledger.check(Promise::RetriesCounted, !endpoint.is_created || retries <= most, text);
        let is_after_last = latest.is_none_or(|got| got.seq < view.from.seq);
        if is_after_last {
            let fewest = job.cycle.retries.0;
            let text = || {
                format!(
                    "{}: {retries} retries in {}, at least {fewest} losses; {}",
                    job.id,
                    view.what,
                    history(job)
                )
            };
            self.ledger.check(Promise::RetriesCounted, retries >= fewest, text);
        }
        let Some(job) = self.model.get_mut(view.job) else { return };
        if !is_after_last {
            return;
        }
        let Some(delivery) = job.deliveries.last_mut() else { return };
        let transition = match (delivery.predecessor, retries) {
            (Some(Loss::Died | Loss::Silent), 1..) => Transition::WorkerLostRequeued,
            (Some(Loss::Drained), 0) => Transition::DrainedRequeued,
            (Some(Loss::Undelivered), 0) => Transition::UndeliveredRequeued,
            (Some(Loss::HandlerError), 1..) => Transition::HandlerErrorRetried,
            _ => return,
        };
        delivery.predecessor = None;
        self.ledger.count_transition(transition);
    }

    /// The largest possible count of retries. A worker that never confirmed the delivery, and continues without the
    /// job, has not lost it.
    fn losses_most(&self, job: &Job) -> u64 {
        let now = self.ledger.now;
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let latest = job.deliveries.last().map(|delivery| delivery.got);
        let (mut lost, mut undelivered) = (0, 0);
        for delivery in job.possible_deliveries() {
            let is_last = Some(delivery.got) == latest;
            if !self.may_be_lost(delivery, is_last) {
                continue;
            }
            let is_sure = delivery.evidence.only_denied()
                && !delivery.confirmed
                && !job.has_foreign_post
                && !self.is_silent(delivery.worker, self.rules.lease_ms());
            *(if is_sure { &mut undelivered } else { &mut lost }) += 1;
        }
        for (arrived, worker) in endpoint.unknown_takers(job.cycle.began.0, now) {
            let is_sure = !job.has_foreign_post
                && worker.is_some_and(|worker| self.certainly_stayed(job, worker, arrived));
            *(if is_sure { &mut undelivered } else { &mut lost }) += 1;
        }
        // A lost delivery is not counted here, but may have been unconfirmed, too.
        let counted = if lost + undelivered > UNDELIVERED_MAX { undelivered } else { 0 };
        (lost + counted) as u64
    }

    fn may_be_lost(&self, delivery: &Delivery, is_last: bool) -> bool {
        let evidence = delivery.evidence;
        let only_drained = evidence.ended.is_some_and(|(_, by_server)| by_server)
            && !evidence.silent
            && !evidence.denied
            && !evidence.failed;
        let is_over = !is_last || evidence.any() || self.is_silent(delivery.worker, self.rules.lease_ms());
        !only_drained && is_over
    }

    /// Whether the server must assume that this worker was healthy since then and never had the job.
    fn certainly_stayed(&self, job: &Job, worker: WorkerNo, since: EventTime) -> bool {
        let entry = &self.model.workers[worker.0];
        !job.was_given_to(worker)
            && entry.ended.is_none()
            && !entry.unfit
            && entry.silent.is_none_or(|silent| silent.seq <= since.seq)
            && self.process_began.is_some_and(|began| began.seq < since.seq)
            && self.process_ended.is_none_or(|ended| ended.seq < since.seq)
            && !self.is_silent(worker, self.rules.lease_ms())
    }
}
