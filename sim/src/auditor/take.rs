//! Deliveries: one worker at a time, with the submitted input, in order, and only of queued jobs.

use bytes::Bytes;

use super::Auditor;
use super::endpoint::HandedOut;
use super::exchange::Exchange;
use super::job::{Delivery, Job, JobNo, Loss, LossEvidence, WorkerNo};
use super::job_view::{begin_retried_life, history};
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::transitions::Transition;
use super::wire::{TakenJob, brief, part};

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
            let spoiled = unreadable > usize::from(taken.is_unreadable());
            let (no, is_new) = self.notes.job(taken.id, endpoint, now);
            if is_new {
                self.watch_end(no);
            }
            if self.notes.get(no).is_some_and(|job| job.endpoint != endpoint) {
                let text = || format!("{}: job {} of another endpoint", exchange.path, taken.id);
                self.ledger.fail(Promise::HandedOut, text);
                continue;
            }
            if self.notes.get(no).is_none_or(|job| job.is_void) {
                continue;
            }
            self.check_input(no, is_new, &part(body, taken.input));
            self.hand_out(no, worker, asked, spoiled);
        }
    }

    fn check_input(&mut self, no: JobNo, is_new: bool, input: &Bytes) {
        let Some((job, endpoint)) = self.notes.with_endpoint(no) else { return };
        if let Some(submission) = &job.submission {
            let text =
                || format!("{}: input {}, submitted {}", job.id, brief(input), brief(&submission.input));
            return self.ledger.check(Promise::InputIntact, submission.input == input, text);
        }
        if is_new {
            // The id is unknown: the job must belong to a submit whose response is missing.
            let fitting = endpoint.orphans.iter().map(|orphan| &orphan.submission);
            let first =
                fitting.filter(|submission| submission.input == input).min_by_key(|fit| fit.span.from.seq);
            if let Some(first) = first {
                job.life.began.0 = first.span.from;
                job.ttl.low_ms = first.span.from.wall_ms + first.ttl_ms;
            }
            let found = first.is_some();
            let text = || format!("{}: input {}, which no client submitted", job.id, brief(input));
            self.ledger.check(Promise::HandedOut, found, text);
        }
        job.delivered_input = Some(input.clone());
    }

    fn hand_out(&mut self, no: JobNo, worker: WorkerNo, asked: EventTime, spoiled: bool) {
        let now = self.ledger.now;
        self.may_be_back(no, asked);
        self.check_alive(no, asked);
        self.check_alone(no, worker, asked);
        self.check_order(no, asked);
        self.check_not_purged(no, asked);
        self.ledger.edge(Transition::Taken);
        let Some(job) = self.notes.get(no) else { return };
        // Earliest event of the delivery.
        let taken = asked.max(job.life.began.0);
        let is_first = job.possible_deliveries().next().is_none();
        let is_known = job.submission.is_some() || job.lives > 0;
        // A take from before a retry may belong to the time before it.
        let is_of_life = job.lives == 0 || asked.seq >= job.life.began.1.seq;
        let submitted = Some(job.life.began.0).filter(|_| is_first && is_known && is_of_life);
        let (doubts, unlisted) = self.doubts_since(no, worker, taken);
        let loss = self.loss_before(no, asked, doubts);
        let Some((job, endpoint)) = self.notes.with_endpoint(no) else { return };
        // Responses crossed: this take came first, and the jobs delivered before were requeued in between.
        for crossed in endpoint.handed_out.iter_mut().filter(|other| other.job == no) {
            crossed.submitted = crossed.submitted.filter(|_| crossed.asked.seq < asked.seq);
        }
        if endpoint.handed_out.len() == REMEMBERED {
            endpoint.handed_out.pop_front();
        }
        endpoint.handed_out.push_back(HandedOut { job: no, submitted, asked, got: now });
        job.life.retries.0 += u64::from(loss == Some(Loss::Died));
        job.touched = now;
        job.life.queued_since = None;
        job.life.undelivered = None;
        job.deliveries.push(Delivery {
            worker,
            asked,
            got: now,
            doubts,
            unlisted,
            confirmed: false,
            spoiled,
            predecessor: loss,
        });
        let held = &mut self.notes.workers[worker.0].held;
        if !held.contains(&no) {
            held.push(no);
        }
    }

    /// Reasons for which the server may have given up the worker while the response was in flight.
    fn doubts_since(&self, no: JobNo, worker: WorkerNo, taken: EventTime) -> (LossEvidence, u32) {
        let holder = &self.notes.workers[worker.0];
        let since = |when: Option<EventTime>| when.is_some_and(|when| when.seq > taken.seq);
        // An earlier ping may be processed later; it does not list the new job.
        let unlisted = holder.pings.iter().flatten().filter(|ping| ping.may_follow(taken)).count() as u32;
        let silent = self.is_silent(worker, self.rules.lease_ms()) || since(holder.silent);
        // A failure of an earlier run in the same worker ends this run, because the two cannot be distinguished.
        let failed = self.notes.get(no).is_some_and(|job| self.may_have_failed_in(job, worker, taken));
        let denied = unlisted >= 2 || since(holder.denied);
        (LossEvidence { silent, denied, failed, ended: None }, unlisted)
    }

    fn check_alive(&mut self, no: JobNo, asked: EventTime) {
        let now = self.ledger.now;
        let Some(job) = self.notes.get_mut(no) else { return };
        let over = job.life.over.filter(|(over, _)| over.seq < asked.seq);
        let is_fine = over.is_none() || begin_retried_life(job, now);
        let why = over.map_or("", |(_, why)| why);
        let text = || format!("{} was handed out, though {why}; {}", job.id, history(job));
        self.ledger.check(Promise::HandedOut, is_fine, text);
        let least_ms = self.clock.least(asked, now);
        let is_late = job.retries.is_empty() && least_ms >= job.ttl.high_ms;
        let text = || format!("{} was handed out after its ttl; {}", job.id, history(job));
        self.ledger.check(Promise::HandedOut, !is_late, text);
    }

    /// Checks that the previous worker must have lost the job by now.
    fn check_alone(&mut self, no: JobNo, worker: WorkerNo, asked: EventTime) {
        let lease_ms = self.rules.lease_ms();
        let now = self.ledger.now;
        let Some(job) = self.notes.get(no) else { return };
        let Some(before) = job.deliveries.last() else { return };
        // A take from before a retry may have a late response. The end before the retry released the job.
        let is_of_past = job.lives > 0 && before.asked.seq < job.life.began.1.seq;
        let is_retried = is_of_past || job.may_be_retried(before.asked, now);
        let is_lost = before.doubts.any() || self.is_silent(before.worker, lease_ms);
        // If the responses crossed, this worker may have lost the job first.
        let crossed = asked.seq < before.got.seq;
        let (old, new) = (before.worker, worker);
        let text = || {
            let names = (&self.notes.workers[old.0].name, &self.notes.workers[new.0].name);
            format!("{} was handed to {} while {} has it; {}", job.id, names.1, names.0, history(job))
        };
        self.ledger.check(Promise::HeldOnce, is_retried || is_lost || crossed, text);
    }

    /// Checks that no job was delivered that should have come later.
    fn check_order(&mut self, no: JobNo, asked: EventTime) {
        let Some(job) = self.notes.get(no) else { return };
        let Some((queued, submitted)) = waiting_since(job) else { return };
        let endpoint = &self.notes.endpoints[job.endpoint.0];
        if endpoint.may_be_taken_unseen(queued, asked) {
            return;
        }
        for other in &endpoint.handed_out {
            let while_waiting = queued.seq < other.asked.seq && other.got.seq < asked.seq;
            let Some(other_submitted) = other.submitted.filter(|_| while_waiting && other.job != no) else {
                continue;
            };
            if self.may_be_aside(no, other.asked, other.got) {
                continue;
            }
            let is_later = submitted.is_none_or(|acknowledged| acknowledged.seq < other_submitted.seq);
            // A job that a power cut may have undone, or an earlier take's response, may be at the front.
            if self.notes.get(other.job).is_some_and(|other| other.is_void) {
                continue;
            }
            // A job that was taken unobserved and requeued is at the front.
            if !is_later || endpoint.may_be_taken_unseen(other_submitted, other.asked) {
                continue;
            }
            let name = self.notes.get(other.job).map_or("?", |other| &*other.id);
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
    fn loss_before(&self, no: JobNo, asked: EventTime, doubts: LossEvidence) -> Option<Loss> {
        let job = self.notes.get(no)?;
        if doubts.any() && job.holder().is_some_and(|before| asked.seq < before.got.seq) {
            return None;
        }
        let endpoint = &self.notes.endpoints[job.endpoint.0];
        let Some(before) = job.holder().filter(|before| before.got.seq < asked.seq || before.doubts.any())
        else {
            return job.life.undelivered.map(|_| Loss::Undelivered);
        };
        if before.got.seq < job.life.began.1.seq {
            return None;
        }
        if endpoint.unknown_takes(before.got, asked) > endpoint.takes_open.len() {
            return None;
        }
        let LossEvidence { silent, denied, failed, ended } = before.doubts;
        match (silent, denied, failed, ended) {
            (false, false, false, Some((_, false))) if before.confirmed => Some(Loss::Died),
            (false, false, false, Some((_, true))) => Some(Loss::Drained),
            (true, false, false, None) => Some(Loss::Silent),
            (false, false, true, None) => Some(Loss::HandlerError),
            _ => None,
        }
    }
}

/// Since when the job was certainly queued, and since when it has its position; `None` for the front.
fn waiting_since(job: &Job) -> Option<(EventTime, Option<EventTime>)> {
    let since = if job.lives > 0 { Some(job.life.began.1) } else { job.acknowledged };
    if job.possible_deliveries().next().is_none() {
        return since.map(|since| (since, Some(since)));
    }
    // A delivery that may belong to the time before a retry says nothing about the position.
    let place = since.filter(|_| job.holder().is_none());
    job.life.queued_since.map(|queued| (queued, place))
}
