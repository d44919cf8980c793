//! Deliveries: one worker at a time, with the submitted input, in order, and only of queued jobs.

use bytes::Bytes;

use super::Auditor;
use super::endpoint::RecentDelivery;
use super::exchange::Exchange;
use super::job::{Delivery, Job, JobNo, Loss, LossEvidence, WorkerNo};
use super::job_view::{begin_retried_cycle, history};
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::transitions::Transition;
use super::wire::{PostContent, TakenJob, brief, part};

/// Recent deliveries with which later ones are compared.
const REMEMBERED: usize = 64;

impl Auditor {
    /// A worker received the response to a take.
    pub(super) fn taken(&mut self, exchange: &Exchange, body: &Bytes) {
        let parsed = if body.first() == Some(&b'[') {
            serde_json::from_slice::<Vec<TakenJob<'_>>>(body)
        } else {
            serde_json::from_slice::<TakenJob<'_>>(body).map(|job| vec![job])
        };
        let (Ok(jobs), Some(worker), Some(asked)) = (parsed, exchange.worker, exchange.arrived) else {
            return self
                .ledger
                .fail(Promise::WellFormed, || format!("{}: no jobs: {}", exchange.path, brief(body)));
        };
        let Some(endpoint) = exchange.endpoint else { return };
        self.check_replaced(exchange, worker);
        let now = self.ledger.now;
        let unreadable = jobs.iter().filter(|job| job.is_unreadable()).count();
        for taken in jobs {
            let with_unreadable = unreadable > usize::from(taken.is_unreadable());
            let (no, is_new) = self.model.job(taken.id, endpoint, now);
            if is_new {
                self.schedule_forget(no);
            }
            if self.model.get(no).is_some_and(|job| job.endpoint != endpoint) {
                let text = || format!("{}: job {} of another endpoint", exchange.path, taken.id);
                self.ledger.fail(Promise::DeliveredQueued, text);
                continue;
            }
            if self.model.get(no).is_none_or(|job| job.is_void) {
                continue;
            }
            self.check_input(no, is_new, &part(body, taken.input));
            self.deliver(no, worker, asked, with_unreadable);
        }
    }

    fn check_input(&mut self, no: JobNo, is_new: bool, input: &Bytes) {
        let Some((job, endpoint)) = self.model.with_endpoint(no) else { return };
        if let Some(submission) = &job.submission {
            let text =
                || format!("{}: input {}, submitted {}", job.id, brief(input), brief(&submission.input));
            return self.ledger.check(Promise::InputIntact, submission.input == input, text);
        }
        if is_new {
            // The id is unknown: the job must belong to a submit whose response is missing.
            let fitting = endpoint.unanswered_submits.iter().map(|submit| &submit.submission);
            let first =
                fitting.filter(|submission| submission.input == input).min_by_key(|fit| fit.span.from.seq);
            if let Some(first) = first {
                job.cycle.began.0 = first.span.from;
                job.ttl.low_ms = first.span.from.wall_ms + first.ttl_ms;
            }
            let found = first.is_some();
            let text = || format!("{}: input {}, which no client submitted", job.id, brief(input));
            self.ledger.check(Promise::DeliveredQueued, found, text);
        }
        job.delivered_input = Some(input.clone());
    }

    fn deliver(&mut self, no: JobNo, worker: WorkerNo, asked: EventTime, with_unreadable: bool) {
        let now = self.ledger.now;
        self.may_be_back(no, asked);
        self.check_alive(no, asked);
        self.check_alone(no, worker, asked);
        self.check_order(no, asked);
        self.check_not_purged(no, asked);
        self.ledger.count_transition(Transition::Taken);
        let Some(job) = self.model.get(no) else { return };
        // Earliest event of the delivery.
        let taken = asked.max(job.cycle.began.0);
        let is_first = job.possible_deliveries().next().is_none();
        let is_known = job.submission.is_some() || job.retries_done > 0;
        // A take from before a retry may belong to the time before it.
        let is_of_cycle = job.retries_done == 0 || asked.seq >= job.cycle.began.1.seq;
        let submitted = Some(job.cycle.began.0).filter(|_| is_first && is_known && is_of_cycle);
        let (evidence, unlisted) = self.evidence_since(no, worker, taken);
        let loss = self.loss_before(no, asked, evidence);
        let Some((job, endpoint)) = self.model.with_endpoint(no) else { return };
        // Responses crossed: this take came first, and the jobs delivered before were requeued in between.
        for crossed in endpoint.recent_deliveries.iter_mut().filter(|other| other.job == no) {
            crossed.submitted = crossed.submitted.filter(|_| crossed.asked.seq < asked.seq);
        }
        if endpoint.recent_deliveries.len() == REMEMBERED {
            endpoint.recent_deliveries.pop_front();
        }
        endpoint.recent_deliveries.push_back(RecentDelivery { job: no, submitted, asked, got: now });
        job.cycle.retries.0 += u64::from(loss == Some(Loss::Died));
        job.touched = now;
        job.cycle.queued_since = None;
        job.cycle.undelivered = None;
        job.deliveries.push(Delivery {
            worker,
            asked,
            got: now,
            evidence,
            unlisted,
            confirmed: false,
            with_unreadable,
            predecessor: loss,
        });
        let held = &mut self.model.workers[worker.0].held;
        if !held.contains(&no) {
            held.push(no);
        }
    }

    /// Reasons for which the server may have given up the worker while the response was in flight.
    fn evidence_since(&self, no: JobNo, worker: WorkerNo, taken: EventTime) -> (LossEvidence, u32) {
        let holder = &self.model.workers[worker.0];
        let since = |when: Option<EventTime>| when.is_some_and(|when| when.seq > taken.seq);
        // An earlier ping may be processed later; it does not list the new job.
        let unlisted = holder.pings.iter().flatten().filter(|ping| ping.may_follow(taken)).count() as u32;
        let silent = self.is_silent(worker, self.rules.lease_ms()) || since(holder.silent);
        // A failure of an earlier run in the same worker ends this run, because the two cannot be distinguished.
        let failed = self.model.get(no).is_some_and(|job| self.may_have_failed_in(job, worker, taken));
        // So does a result of an earlier run that cannot be read.
        let unreadable = self.model.get(no).is_some_and(|job| may_have_released(job, worker, taken));
        let denied = unlisted >= 2 || since(holder.denied) || unreadable;
        (LossEvidence { silent, denied, failed, ended: None }, unlisted)
    }

    fn check_alive(&mut self, no: JobNo, asked: EventTime) {
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(no) else { return };
        let over = job.cycle.over.filter(|(over, _)| over.seq < asked.seq);
        let is_fine = over.is_none() || begin_retried_cycle(job, now);
        let why = over.map_or("", |(_, why)| why);
        let text = || format!("{} was handed out, though {why}; {}", job.id, history(job));
        self.ledger.check(Promise::DeliveredQueued, is_fine, text);
        let least_ms = self.clock.least(asked, now);
        let is_late = job.retries.is_empty() && least_ms >= job.ttl.high_ms;
        let text = || format!("{} was handed out after its ttl; {}", job.id, history(job));
        self.ledger.check(Promise::DeliveredQueued, !is_late, text);
    }

    /// Checks that the previous worker must have lost the job by now.
    fn check_alone(&mut self, no: JobNo, worker: WorkerNo, asked: EventTime) {
        let lease_ms = self.rules.lease_ms();
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return };
        let Some(before) = job.deliveries.last() else { return };
        // A take from before a retry may have a late response. The end before the retry released the job.
        let is_of_past = job.retries_done > 0 && before.asked.seq < job.cycle.began.1.seq;
        let is_retried = is_of_past || job.may_be_retried(before.asked, now);
        let is_lost = before.evidence.any() || self.is_silent(before.worker, lease_ms);
        // If the responses crossed, this worker may have lost the job first.
        let crossed = asked.seq < before.got.seq;
        let (old, new) = (before.worker, worker);
        let text = || {
            let names = (&self.model.workers[old.0].name, &self.model.workers[new.0].name);
            format!("{} was handed to {} while {} has it; {}", job.id, names.1, names.0, history(job))
        };
        self.ledger.check(Promise::HeldOnce, is_retried || is_lost || crossed, text);
    }

    /// Checks that no job was delivered that should have come later.
    fn check_order(&mut self, no: JobNo, asked: EventTime) {
        let Some(job) = self.model.get(no) else { return };
        let Some((queued, submitted)) = waiting_since(job) else { return };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        if endpoint.may_be_taken_unobserved(queued, asked) {
            return;
        }
        for other in &endpoint.recent_deliveries {
            let while_waiting = queued.seq < other.asked.seq && other.got.seq < asked.seq;
            let Some(other_submitted) = other.submitted.filter(|_| while_waiting && other.job != no) else {
                continue;
            };
            if self.may_be_deferred(no, other.asked, other.got) {
                continue;
            }
            let is_later = submitted.is_none_or(|acknowledged| acknowledged.seq < other_submitted.seq);
            // A job that a power cut may have undone, or an earlier take's response, may be at the front.
            if self.model.get(other.job).is_some_and(|other| other.is_void) {
                continue;
            }
            // A job that was taken unobserved and requeued is at the front.
            if !is_later || endpoint.may_be_taken_unobserved(other_submitted, other.asked) {
                continue;
            }
            let name = self.model.get(other.job).map_or("?", |other| &*other.id);
            let text = || {
                format!(
                    "{} waits since {} ms, and {name}, submitted at {} ms, was handed out before it at {} ms; {}",
                    job.id,
                    queued.ms,
                    other_submitted.ms,
                    other.got.ms,
                    history(job)
                )
            };
            return self.ledger.fail(Promise::InOrder, text);
        }
        self.ledger.check(Promise::InOrder, true, String::new);
    }

    /// The certain reason for which the previous worker lost the job; `None` if there are several. If the responses
    /// may have crossed, the present worker lost the job first.
    fn loss_before(&self, no: JobNo, asked: EventTime, evidence: LossEvidence) -> Option<Loss> {
        let job = self.model.get(no)?;
        if evidence.any() && job.holder().is_some_and(|before| asked.seq < before.got.seq) {
            return None;
        }
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let Some(before) = job.holder().filter(|before| before.got.seq < asked.seq || before.evidence.any())
        else {
            return job.cycle.undelivered.map(|_| Loss::Undelivered);
        };
        if before.got.seq < job.cycle.began.1.seq {
            return None;
        }
        if endpoint.unknown_takes(before.got, asked) > endpoint.takes_open.len() {
            return None;
        }
        let LossEvidence { silent, denied, failed, ended } = before.evidence;
        match (silent, denied, failed, ended) {
            (false, false, false, Some((_, false))) if before.confirmed => Some(Loss::Died),
            (false, false, false, Some((_, true))) => Some(Loss::Drained),
            (true, false, false, None) => Some(Loss::Silent),
            (false, false, true, None) => Some(Loss::HandlerError),
            _ => None,
        }
    }
}

/// Whether the worker has posted a result since then that could not be read, and that released the job.
fn may_have_released(job: &Job, worker: WorkerNo, since: EventTime) -> bool {
    job.posts.iter().any(|post| {
        matches!(post.content, PostContent::Unreadable)
            && post.worker == worker
            && post.span.may_follow(since)
    })
}

/// Since when the job was certainly queued, and since when it has its position; `None` for the front.
fn waiting_since(job: &Job) -> Option<(EventTime, Option<EventTime>)> {
    let since = if job.retries_done > 0 { Some(job.cycle.began.1) } else { job.acknowledged };
    if job.possible_deliveries().next().is_none() {
        return since.map(|since| (since, Some(since)));
    }
    // A delivery that may belong to the time before a retry says nothing about the position.
    let place = since.filter(|_| job.holder().is_none());
    job.cycle.queued_since.map(|queued| (queued, place))
}
