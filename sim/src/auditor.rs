//! Checks the promises as an outside observer: the auditor knows what clients, workers and receivers saw, and
//! nothing else.
//!
//! The auditor shares no code with the server. Every rule is written from the specification. Unknown times are
//! bounded: a request takes effect between its arrival and its response, or perhaps never if it has none, and the
//! server's clock shows at most what the wall clock showed in its time. A promise counts as broken only if no
//! history that fits the observations keeps it.

mod answers;
mod buffered_loss;
mod consumed;
mod control;
mod damage;
mod endpoint;
mod eviction;
mod exchange;
mod fleet;
mod health;
mod job;
mod job_view;
mod ledger;
mod limits;
mod model;
mod operation;
mod operator;
mod outages;
mod outcome_cause;
mod promise;
mod quiescence;
mod reports;
mod retention;
mod retries;
mod rules;
mod sse;
mod stop;
mod submit;
mod take;
#[cfg(test)]
mod tests;
mod time_bounds;
mod timeouts;
mod transitions;
mod unread;
mod unreadable_job;
mod waits;
mod webhook_size;
mod webhooks;
mod wire;
mod worker;
mod worker_lease;

use std::collections::BTreeSet;

use self::damage::{Damage, is_damaged};
use self::exchange::{Exchange, Exchanges};
use self::job::EndpointNo;
use self::ledger::Ledger;
use self::limits::{Counted, Window};
use self::model::{Map, Model};
use self::operation::{Address, Operation, listed_jobs};
pub use self::promise::Promise;
pub use self::rules::{Rate, Rates, Rules};
use self::stop::Due;
use self::submit::Keyed;
use self::time_bounds::{EventTime, WallClock};
pub use self::transitions::Transition;
use self::unread::Unread;
use self::webhooks::Call;
use crate::observation::{HttpRequest, Moment, Observation};

/// A promise that observations show to be broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When the violation was detected.
    pub at: Moment,
    /// Name of the promise.
    pub promise: &'static str,
    /// The observations that break the promise.
    pub text: String,
}

/// Checks all promises of one world.
#[derive(Default)]
pub struct Auditor {
    rules: Rules,
    ledger: Ledger,
    clock: WallClock,
    model: Model,
    exchanges: Exchanges,
    keys: Map<(EndpointNo, Box<str>), Keyed>,
    unread: Unread,
    damage: Damage,
    windows: Map<Counted, Window>,
    /// Webhook calls in flight.
    calls: Map<u64, Call>,
    /// Times of later checks.
    due: BTreeSet<(u64, Due)>,
    /// Start and end of each server process.
    processes: Vec<(EventTime, Option<EventTime>)>,
    process_began: Option<EventTime>,
    process_ended: Option<EventTime>,
    /// When the server last lost the ability to store what it knew, in ms.
    last_crash_ms: Option<u64>,
    /// Times of the server's outages, in ms.
    outages_ms: Vec<u64>,
    /// Time since when workers may have ended unnoticed by the server, and time of the last renewal of leases.
    leases_renewed: (u64, u64),
    /// Last time of an observable fault, in ms.
    last_fault_ms: u64,
    /// The event after which no fault occurs.
    quiet_since: Option<EventTime>,
}

impl Auditor {
    /// Creates an auditor for a server with these rules.
    pub fn new(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Processes the next observation.
    pub fn observe(&mut self, at: Moment, seen: &Observation) {
        self.ledger.advance(at);
        if self.clock.note(at) {
            self.last_fault_ms = at.ms;
            self.note_outage();
        }
        while let Some((_, due)) = self.due.first().copied().filter(|(due_ms, _)| *due_ms <= at.ms) {
            self.due.pop_first();
            match due {
                Due::Stop(job, retries_done, since_ms) => self.check_stopped(job, retries_done, since_ms),
                Due::Forget(job) => self.try_to_forget(job),
            }
        }
        self.apply(at, seen);
    }

    fn apply(&mut self, at: Moment, seen: &Observation) {
        match seen {
            Observation::Sent(id, _, request) => self.sent(id.0, request),
            Observation::Arrived(id) => self.arrived(id.0),
            Observation::Piece(id, piece) => self.piece_received(id.0, piece),
            Observation::Answered(id, answer) => {
                let Some(exchange) = self.exchanges.remove(&id.0) else { return };
                self.close_take(id.0, &exchange);
                self.limit_settled(id.0, &exchange, Some(answer.status));
                if answer.status >= 500 && !is_damaged(answer) {
                    self.last_fault_ms = at.ms;
                    self.note_outage();
                }
                self.answer(id.0, &exchange, answer);
            }
            Observation::Broken(id) => {
                let Some(exchange) = self.exchanges.remove(&id.0) else { return };
                self.last_fault_ms = at.ms;
                self.close_take(id.0, &exchange);
                self.limit_settled(id.0, &exchange, None);
                self.sse_ended(&exchange);
                self.unanswered(&exchange);
            }
            Observation::Called(call, url, body) => self.called(*call, url, body),
            Observation::CallAnswered(call, status) => self.call_ended(*call, Some(*status)),
            Observation::CallBroken(call) => self.call_ended(*call, None),
            Observation::WorkerStarted(worker, endpoint) => self.worker_started(worker, endpoint),
            Observation::WorkerEnded(worker, by_server) => self.worker_ended(worker, *by_server),
            Observation::HandlerBegan(worker, job) => self.handler_began(worker, job),
            Observation::HandlerEnded(worker, job) => self.handler_ended(worker, job),
            Observation::ServerUp => self.server_up(at),
            Observation::ServerDown(killed) => self.server_down(at, *killed),
            // Every event carries the clock's value. Between two events the clock may have shown more.
            Observation::ClockSet => {}
            Observation::DiskFailed => {
                self.last_fault_ms = at.ms;
                self.last_crash_ms = Some(at.ms);
                self.note_outage();
                self.leases_renewed(at.ms);
            }
            Observation::InputUnread(job) => self.input_unread(job),
            Observation::InputDamaged(job) => self.input_damaged(job),
            Observation::OutputDamaged(job) => self.output_damaged(job),
            Observation::ChunkDamaged(job, offset) => self.chunk_damaged(job, *offset),
            Observation::QuietPhaseBegan => self.quiet_since = Some(self.ledger.now),
            Observation::End => self.check_quiescence(),
        }
    }

    /// The broken promises, in order of detection.
    pub fn violations(&self) -> &[Violation] {
        &self.ledger.violations
    }

    /// How often each promise was checked.
    pub fn checked(&self) -> Vec<(&'static str, u64)> {
        self.ledger.checked()
    }

    /// How often each transition of a job was certainly observed.
    pub fn transitions(&self) -> Vec<(Transition, u64)> {
        self.ledger.transitions()
    }

    fn sent(&mut self, id: u64, request: &HttpRequest) {
        let address = Address::of(request.method, &request.path);
        let header = |name: &str| {
            request.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        };
        let sse = sse::SseState::of(address.operation, header);
        let operation = if sse.is_some() { Operation::Follow } else { address.operation };
        let endpoint =
            (!address.endpoint.is_empty()).then(|| self.model.endpoint(address.endpoint, &self.rules));
        let worker = (!address.worker.is_empty()).then(|| self.model.worker(address.worker));
        let listed = match address.operation {
            Operation::Ping { .. } => {
                listed_jobs(address.query).filter_map(|id| self.model.find_job(id)).collect()
            }
            _ => Vec::new(),
        };
        let exchange = Exchange {
            operation,
            endpoint,
            job: self.model.find_job(address.job),
            worker,
            sent: self.ledger.now,
            arrived: None,
            process: 0,
            body: request.body.clone(),
            key: header("idempotency-key").map(Into::into),
            owner: submit::hash_of(
                header("authorization").unwrap_or("").trim_start_matches("Bearer ").as_bytes(),
            ),
            listed,
            ended: endpoint::Ended::default(),
            path: request.path.as_str().into(),
            is_void: false,
            sse,
            is_slow: address.operation == Operation::DeleteEndpoint,
        };
        self.exchanges.insert(id, exchange);
    }

    fn arrived(&mut self, id: u64) {
        let Some(mut exchange) = self.exchanges.remove(&id) else { return };
        let now = self.ledger.now;
        exchange.arrived = Some(now);
        exchange.process = self.processes.len().saturating_sub(1);
        self.limit_arrived(id, &exchange);
        if let Some(worker) = exchange.worker {
            self.worker_request_arrived(&exchange, worker);
        }
        match exchange.operation {
            Operation::Run | Operation::RunSync => self.submit_arrived(id, &exchange),
            Operation::Cancel
            | Operation::Retry
            | Operation::Purge
            | Operation::Status { ttl_ms: Some(_) } => {
                self.change_arrived(id, &exchange);
            }
            Operation::Done | Operation::Chunk => self.post_arrived(id, &exchange),
            Operation::RedeliverWebhooks => {
                if let Some(endpoint) = exchange.endpoint {
                    self.model.endpoints[endpoint.0].webhooks_redelivered = Some(now);
                }
            }
            Operation::ChangeEndpoint => self.operation_arrived(&exchange, false),
            Operation::DeleteEndpoint => self.operation_arrived(&exchange, true),
            Operation::Health => {
                let ended = exchange.endpoint.map(|endpoint| self.model.endpoints[endpoint.0].ended);
                exchange.ended = ended.unwrap_or_default();
            }
            Operation::Take { .. } => {
                if let Some(endpoint) = exchange.endpoint {
                    self.model.endpoints[endpoint.0].takes_open.push((id, now, exchange.worker));
                }
            }
            _ => {}
        }
        self.exchanges.insert(id, exchange);
    }

    fn close_take(&mut self, id: u64, exchange: &Exchange) {
        if let (Operation::Take { .. }, Some(endpoint)) = (exchange.operation, exchange.endpoint) {
            self.model.endpoints[endpoint.0].takes_open.retain(|(open, ..)| *open != id);
        }
    }

    fn server_up(&mut self, at: Moment) {
        let now = self.ledger.now;
        self.clock.restart(at);
        // No lease ended while no server was running.
        self.leases_renewed(self.process_ended.map_or(at.ms, |ended| ended.ms));
        self.processes.push((now, None));
        self.process_began = Some(now);
        self.last_fault_ms = at.ms;
        self.note_outage();
    }

    fn server_down(&mut self, at: Moment, killed: bool) {
        let now = self.ledger.now;
        if killed {
            self.forget_buffered();
        }
        self.process_ended = Some(now);
        self.note_silent_workers();
        if let Some((_, ended)) = self.processes.last_mut() {
            *ended = Some(now);
        }
        self.last_fault_ms = at.ms;
        self.last_crash_ms = Some(at.ms);
        self.note_outage();
    }
}
