//! Submits: one job per idempotency key, and no job without a submit.

use bytes::Bytes;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::Auditor;
use super::endpoint::UnansweredSubmit;
use super::exchange::Exchange;
use super::job::{Deadline, EndpointNo, JobNo, Submission};
use super::operation::Operation;
use super::promise::Promise;
use super::time_bounds::{EventTime, Span};
use super::transitions::Transition;
use super::wire::{Submitted, brief, part};

/// The submits with one idempotency key.
#[derive(Debug, Default)]
pub(super) struct Keyed {
    /// Submits that may have created a job: exchange, arrival, and hash of the body.
    asked: Vec<(u64, EventTime, u64)>,
    /// Responses: job, hash of the body, request and response.
    answered: Vec<(JobNo, u64, EventTime, EventTime)>,
}

impl Auditor {
    /// A submit arrived at the server. A job may exist from now on.
    pub(super) fn submit_arrived(&mut self, id: u64, exchange: &Exchange) {
        let Some(endpoint) = exchange.endpoint else { return };
        let now = self.ledger.now;
        if let Some(key) = &exchange.key {
            let keyed = self.keys.entry((endpoint, key.clone())).or_default();
            keyed.asked.push((id, now, hash_of(&exchange.body)));
        }
        let Some(submission) = self.read_submission(&exchange.body, now) else { return };
        let submit = UnansweredSubmit { exchange: id, submission };
        self.model.endpoints[endpoint.0].unanswered_submits.push(submit);
    }

    fn read_submission(&self, body: &Bytes, now: EventTime) -> Option<Submission> {
        let submitted: Submitted<'_> = serde_json::from_slice(body).ok()?;
        let policy = submitted.policy.as_ref();
        Some(Submission {
            span: Span { from: now, until: None },
            input: part(body, submitted.input),
            webhook: submitted.webhook.as_ref().map(|url| url.clone().into_owned()),
            ttl_ms: policy.and_then(|policy| policy.ttl).unwrap_or(self.rules.ttl_ms),
            execution_timeout_ms: policy.and_then(|policy| policy.execution_timeout_ms),
            is_low_priority: policy.is_some_and(|policy| policy.low_priority),
        })
    }

    /// A submit was answered with a job.
    pub(super) fn submitted(&mut self, id: u64, exchange: &Exchange, job_id: &str) {
        let no = self.accepted(id, exchange, job_id);
        if let (Some(no), Some(endpoint), Some(key)) = (no, exchange.endpoint, exchange.key.clone()) {
            self.check_key(endpoint, &key, no, exchange);
        }
    }

    fn accepted(&mut self, id: u64, exchange: &Exchange, job_id: &str) -> Option<JobNo> {
        let (Some(endpoint), Some(arrived)) = (exchange.endpoint, exchange.arrived) else { return None };
        let now = self.ledger.now;
        let (no, is_new) = self.model.job(job_id, endpoint, now);
        if is_new {
            self.schedule_forget(no);
        }
        let unanswered_submits = &mut self.model.endpoints[endpoint.0].unanswered_submits;
        let own = unanswered_submits
            .iter()
            .position(|submit| submit.exchange == id)
            .map(|at| unanswered_submits.swap_remove(at));
        let job = self.model.get_mut(no)?;
        job.touched = now;
        if job.is_void {
            return None;
        }
        if job.endpoint != endpoint {
            return Some(no);
        }
        if job.acknowledged.is_none() {
            job.acknowledged = Some(now);
            self.ledger.count_transition(Transition::Accepted);
        } else if exchange.key.is_none() {
            let text = || format!("{}: {job_id} came before", exchange.path);
            self.ledger.fail(Promise::OneJobPerKey, text);
        }
        let job = self.model.get_mut(no)?;
        if job.submission.is_some() {
            return Some(no);
        }
        let Some(UnansweredSubmit { mut submission, .. }) = own else { return Some(no) };
        submission.span.until = Some(now);
        // With the same key, an earlier request may have created the job.
        let first = exchange.key.clone().and_then(|key| {
            let hash = hash_of(&exchange.body);
            let keyed = self.keys.get(&(endpoint, key))?;
            keyed.asked.iter().filter(|(_, _, other)| *other == hash).map(|(_, when, _)| *when).min()
        });
        submission.span.from = first.unwrap_or(arrived).min(arrived);
        job.ttl = Deadline {
            low_ms: self.clock.least(submission.span.from, now) + submission.ttl_ms,
            high_ms: self.clock.most(submission.span.from, now) + submission.ttl_ms,
        };
        if job.retries_done == 0 {
            job.cycle.began.0 = submission.span.from;
        }
        if let Some(delivered) = job.delivered_input.take() {
            let text =
                || format!("{job_id}: input {}, submitted {}", brief(&delivered), brief(&submission.input));
            self.ledger.check(Promise::InputIntact, delivered == submission.input, text);
        }
        job.submission = Some(submission);
        Some(no)
    }

    /// A submit was refused and created no job.
    pub(super) fn submit_refused(&mut self, id: u64, exchange: &Exchange, status: u16) {
        let Some(endpoint) = exchange.endpoint else { return };
        let is_deleted = self.model.endpoints[endpoint.0].deleted.is_some();
        if status == 404 && (is_deleted || exchange.operation == Operation::RunSync) {
            // The submit may have been accepted before its endpoint or its job was deleted.
            return;
        }
        if let Some(key) = exchange.key.clone() {
            let hash = hash_of(&exchange.body);
            if let Some(keyed) = self.keys.get_mut(&(endpoint, key)) {
                if status == 409 {
                    let is_right = keyed.asked.iter().any(|(_, _, other)| *other != hash);
                    let text = || format!("{}: 409, and no other body came under the key", exchange.path);
                    self.ledger.check(Promise::OneJobPerKey, is_right, text);
                }
                keyed.asked.retain(|(other, _, _)| *other != id);
            }
        }
        self.model.endpoints[endpoint.0].unanswered_submits.retain(|submit| submit.exchange != id);
    }

    /// Checks that the same key returns the same job while the job certainly exists.
    fn check_key(&mut self, endpoint: EndpointNo, key: &str, no: JobNo, exchange: &Exchange) {
        let now = self.ledger.now;
        let Some(arrived) = exchange.arrived else { return };
        let hash = hash_of(&exchange.body);
        let Some(keyed) = self.keys.get_mut(&(endpoint, key.into())) else { return };
        let earlier = keyed.answered.clone();
        keyed.answered.push((no, hash, arrived, now));
        for (other, other_hash, other_arrived, answered) in &earlier {
            if *other == no && *other_hash == hash {
                self.ledger.check(Promise::OneJobPerKey, true, String::new);
                continue;
            }
            // Whichever came first, the other found the job if it existed all the time.
            let from = (*other_arrived).min(arrived);
            let both_live = self.certainly_exists(*other, from, now)
                && (*other == no || answered.seq < arrived.seq || self.certainly_exists(no, from, now));
            let text = || {
                let id = |no| self.model.get(no).map_or("?", |job| &*job.id);
                format!("{}: key {key} stands for {} and {}", exchange.path, id(*other), id(no))
            };
            self.ledger.check(Promise::OneJobPerKey, !both_live, text);
        }
    }
}

/// Returns the hash of a body.
pub(super) fn hash_of(body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}
