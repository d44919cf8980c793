//! Responses: passes each to the checks that it concerns, and checks its documented form.

use serde::Deserialize;

use super::Auditor;
use super::damage::is_damaged;
use super::exchange::Exchange;
use super::job::Pin;
use super::job_view::{JobView, LIST, history};
use super::operation::Operation;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::wire::{Health, JobRecord, Page, PurgeResult, ShownState, brief};
use crate::observation::HttpResponse;

/// A take that was held this much longer than the hold time met a slow disk, in ms.
const SLOW_WRITE_MS: u64 = 1_500;

/// The documented form of an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorShape {
    error: String,
    code: String,
}

impl Auditor {
    /// Processes a response.
    pub(super) fn answer(&mut self, id: u64, exchange: &Exchange, answer: &HttpResponse) {
        self.check_form(exchange, answer);
        let Some(arrived) = exchange.arrived else {
            let text = || format!("{}: an answer to what never arrived", exchange.path);
            return self.ledger.fail(Promise::WellFormed, text);
        };
        if self.may_have_delivered(exchange, arrived, answer.status) {
            self.unanswered(exchange);
        }
        if exchange.is_void {
            return self.void_answer(exchange, &answer.body);
        }
        match answer.status {
            200..300 => self.success(id, exchange, arrived, answer),
            status => {
                if is_damaged(answer) {
                    self.damage_reported(exchange, arrived);
                }
                self.refusal(id, exchange, arrived, status);
            }
        }
    }

    /// Whether the server may have delivered jobs in this take although none arrived. A take that a power cut made
    /// void counts as well, because the power cut may have lost nothing.
    fn may_have_delivered(&self, exchange: &Exchange, arrived: EventTime, status: u16) -> bool {
        matches!(exchange.operation, Operation::Take { .. })
            && match status {
                200 => false,
                // The server waited for a failed write: a job is assigned, and its worker will not learn of it.
                204 => self.is_past(arrived, self.rules.worker_hold_ms + SLOW_WRITE_MS),
                _ => true,
            }
    }

    fn success(&mut self, id: u64, exchange: &Exchange, arrived: EventTime, answer: &HttpResponse) {
        let body = &answer.body;
        self.worker_request_succeeded(exchange);
        self.check_endpoint_there(exchange, arrived);
        match exchange.operation {
            Operation::Run | Operation::RunSync => self.submit_answered(id, exchange, answer),
            Operation::Status { ttl_ms } => {
                self.job_shown(exchange, answer, "a status");
                if let (Some(ttl_ms), Some(job)) = (ttl_ms, exchange.job) {
                    self.pinned(job, arrived, ttl_ms);
                }
            }
            Operation::StatusSync => self.job_shown(exchange, answer, "a status-sync"),
            Operation::Stream { .. } => self.stream_shown(exchange, body),
            Operation::Follow => self.sse_ended(exchange),
            Operation::Cancel | Operation::Retry => {
                let Ok(record) = serde_json::from_slice::<JobRecord<'_>>(body) else {
                    return self.unreadable_answer(exchange);
                };
                let (Some(job), Some(state)) = (exchange.job, ShownState::parse(record.status)) else {
                    return;
                };
                if exchange.operation == Operation::Retry {
                    self.retried(id, job, arrived, state);
                } else {
                    self.change_settled(exchange, Some(self.ledger.now), false);
                    self.cancelled(job, arrived, state);
                }
            }
            Operation::Purge => {
                let Ok(result) = serde_json::from_slice::<PurgeResult<'_>>(body) else {
                    return self.unreadable_answer(exchange);
                };
                self.change_settled(exchange, Some(self.ledger.now), false);
                self.purged(exchange, &result);
            }
            Operation::Health => match serde_json::from_slice::<Health>(body) {
                Ok(health) => self.health_shown(exchange, &health),
                Err(_) => self.unreadable_answer(exchange),
            },
            Operation::Requests { whole, limit } => self.page_shown(exchange, arrived, answer, whole, limit),
            Operation::Take { .. } if answer.status == 200 => self.taken(exchange, body),
            Operation::Done | Operation::Chunk => self.post_answered(id, exchange, answer.status),
            Operation::Ping { .. } => self.ping_answered(exchange),
            Operation::CreateEndpoint => self.endpoint_shown(exchange, body, true),
            Operation::ChangeEndpoint | Operation::ReadEndpoint => self.endpoint_shown(exchange, body, false),
            Operation::DeleteEndpoint => {
                self.deletion_settled(exchange, Some(self.ledger.now), Some(answer.status));
            }
            _ => {}
        }
    }

    fn refusal(&mut self, id: u64, exchange: &Exchange, arrived: EventTime, status: u16) {
        let is_refused = (400..500).contains(&status);
        match exchange.operation {
            Operation::Run | Operation::RunSync if is_refused => self.submit_refused(id, exchange, status),
            Operation::Cancel | Operation::Retry | Operation::Purge => {
                let now = self.ledger.now;
                if status == 400 && exchange.operation == Operation::Retry {
                    self.check_retry_refused(exchange, arrived);
                }
                // A change whose storage is uncertain may still become visible.
                self.change_settled(exchange, is_refused.then_some(now), is_refused);
            }
            Operation::Status { ttl_ms: Some(_) } if !is_refused => self.pin_lost(exchange),
            Operation::Done | Operation::Chunk => self.post_answered(id, exchange, status),
            Operation::DeleteEndpoint => self.deletion_settled(exchange, Some(self.ledger.now), Some(status)),
            _ => {}
        }
        let is_about_job = matches!(
            exchange.operation,
            Operation::Status { .. }
                | Operation::StatusSync
                | Operation::Stream { .. }
                | Operation::Follow
                | Operation::Cancel
                | Operation::Retry
        );
        if status == 404
            && is_about_job
            && let Some(job) = exchange.job
        {
            self.missing(job, arrived, &exchange.path);
        }
    }

    /// Checks that a failed or timed-out job can be retried.
    fn check_retry_refused(&mut self, exchange: &Exchange, arrived: EventTime) {
        let job = exchange.job.and_then(|no| self.model.get(no)).filter(|job| !job.is_void);
        let Some(job) = job else { return };
        let Some(terminal) = &job.cycle.terminal else { return };
        let is_known =
            job.cycle.over.is_some_and(|(over, _)| over.seq < arrived.seq) && job.retries.len() == 1;
        let is_wrong = is_known && matches!(terminal.state, ShownState::Failed | ShownState::TimedOut);
        let text =
            || format!("{} is {:?}, and its retry was refused; {}", job.id, terminal.state, history(job));
        self.ledger.check(Promise::Retryable, !is_wrong, text);
    }

    fn submit_answered(&mut self, id: u64, exchange: &Exchange, answer: &HttpResponse) {
        let Ok(record) = serde_json::from_slice::<JobRecord<'_>>(&answer.body) else {
            return self.unreadable_answer(exchange);
        };
        let is_sync = exchange.operation == Operation::RunSync;
        let text = || format!("{}: id {}", exchange.path, record.id);
        let fits = exchange.key.is_some() || record.id.starts_with("sync-") == is_sync;
        self.ledger.check(Promise::WellFormed, fits, text);
        self.submitted(id, exchange, record.id);
        self.check_wait_answered(exchange, record.id);
        let Some(arrived) = exchange.arrived else { return };
        if is_sync {
            self.record_shown(&answer.body, &record, arrived, "a runsync");
        } else if let (Some(job), Some(state)) =
            (self.model.find_job(record.id), ShownState::parse(record.status))
        {
            self.observe_job(&JobView { job, from: arrived, state, shown: None, what: "a run" });
        }
    }

    fn job_shown(&mut self, exchange: &Exchange, answer: &HttpResponse, what: &'static str) {
        let Ok(record) = serde_json::from_slice::<JobRecord<'_>>(&answer.body) else {
            return self.unreadable_answer(exchange);
        };
        let own = exchange.job.and_then(|no| self.model.get(no)).is_none_or(|job| *job.id == *record.id);
        self.ledger.check(Promise::WellFormed, own, || format!("{} shows {}", exchange.path, record.id));
        self.check_wait_answered(exchange, record.id);
        let Some(arrived) = exchange.arrived else { return };
        self.record_shown(&answer.body, &record, arrived, what);
    }

    fn page_shown(
        &mut self,
        exchange: &Exchange,
        arrived: EventTime,
        answer: &HttpResponse,
        whole: bool,
        limit: u64,
    ) {
        let Ok(page) = serde_json::from_slice::<Page<'_>>(&answer.body) else {
            return self.unreadable_answer(exchange);
        };
        let Some(endpoint) = exchange.endpoint else { return };
        let now = self.ledger.now;
        let mut shown = Vec::with_capacity(page.requests.len());
        for record in &page.requests {
            let (no, is_new) = self.model.job(record.id, endpoint, now);
            if is_new {
                self.schedule_forget(no);
            }
            shown.push(no);
            self.record_shown(&answer.body, record, arrived, LIST);
        }
        shown.sort_unstable();
        let distinct = shown.windows(2).all(|pair| pair[0] != pair[1]);
        self.ledger.check(Promise::Listed, distinct, || format!("{} shows a job twice", exchange.path));
        if whole && page.cursor.is_none() && (page.requests.len() as u64) < limit {
            self.check_listed(endpoint, &shown, arrived);
        }
    }

    fn pin_lost(&mut self, exchange: &Exchange) {
        if let Some(job) = exchange.job.and_then(|no| self.model.get_mut(no)) {
            job.pin = Pin::Lost;
        }
    }

    /// Records that no response will arrive.
    pub(super) fn unanswered(&mut self, exchange: &Exchange) {
        let Some(arrived) = exchange.arrived else { return };
        // A request at a process that has ended can no longer take effect.
        let until = self.processes.get(exchange.process).and_then(|(_, ended)| *ended);
        match exchange.operation {
            Operation::Cancel | Operation::Retry | Operation::Purge => {
                self.change_settled(exchange, until, false);
            }
            Operation::Status { ttl_ms: Some(_) } => self.pin_lost(exchange),
            Operation::DeleteEndpoint => self.deletion_settled(exchange, until, None),
            Operation::Take { .. } => {
                let Some(endpoint) = exchange.endpoint else { return };
                let now = self.ledger.now;
                self.model.endpoints[endpoint.0].take_lost(arrived, now, exchange.worker);
            }
            _ => {}
        }
    }

    fn check_endpoint_there(&mut self, exchange: &Exchange, arrived: EventTime) {
        let Some(endpoint) = exchange.endpoint else { return };
        let entry = &self.model.endpoints[endpoint.0];
        let is_gone = entry.is_deleted
            && entry.deleted.and_then(|span| span.until).is_some_and(|until| until.seq < arrived.seq);
        let is_exempt = exchange.operation.is_workers() || exchange.operation == Operation::DeleteEndpoint;
        let text = || format!("{}: an answer of a deleted endpoint", exchange.path);
        self.ledger.check(Promise::EndpointGone, !is_gone || is_exempt, text);
    }

    fn unreadable_answer(&mut self, exchange: &Exchange) {
        self.ledger.fail(Promise::WellFormed, || format!("{}: the answer cannot be read", exchange.path));
    }

    fn check_form(&mut self, exchange: &Exchange, answer: &HttpResponse) {
        let (status, path) = (answer.status, &exchange.path);
        let is_defect = status == 500 && !is_damaged(answer);
        self.ledger.check(Promise::NoDefect, !is_defect, || format!("{path}: 500 {}", brief(&answer.body)));
        if status == 204 {
            let may_be_empty = matches!(
                exchange.operation,
                Operation::Take { .. } | Operation::StopPoll | Operation::DeleteEndpoint | Operation::Other
            );
            return self.ledger.check(Promise::WellFormed, may_be_empty, || format!("{path}: 204"));
        }
        let header = |name: &str| {
            answer.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        };
        let is_json = header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        let is_ping = matches!(exchange.operation, Operation::Ping { .. });
        if status == 200 {
            let is_events = header("content-type") == Some("text/event-stream");
            let is_json = if exchange.operation == Operation::Follow { is_events } else { is_json };
            let fits = is_json || is_ping || exchange.operation == Operation::Other;
            return self
                .ledger
                .check(Promise::WellFormed, fits, || format!("{path}: {:?}", header("content-type")));
        }
        let failure = serde_json::from_slice::<ErrorShape>(&answer.body);
        let is_shaped =
            is_json && failure.is_ok_and(|failure| !failure.error.is_empty() && !failure.code.is_empty());
        let text = || format!("{path}: {status} {:?} {}", answer.headers, brief(&answer.body));
        self.ledger.check(Promise::WellFormed, is_shaped && (400..600).contains(&status), text);
        if matches!(status, 429 | 503) {
            let waits = header("retry-after").is_some_and(|text| text.parse::<u64>().is_ok());
            self.ledger.check(Promise::WellFormed, waits, || format!("{path}: {status} without Retry-After"));
        }
    }
}
