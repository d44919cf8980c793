//! Rate limits: no more requests pass than configured, and none is refused below the limit.

use std::collections::VecDeque;

use super::Auditor;
use super::exchange::Exchange;
use super::job::EndpointNo;
use super::operation::Operation;
use super::promise::Promise;
use super::rules::{Rate, Rates};
use super::sse::SseState;
use super::time_bounds::EventTime;

/// Length of the window in which requests are counted, in ms.
const WINDOW_MS: u64 = 10_000;

/// The rows of the table of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Row {
    Run,
    RunSync,
    Status,
    Stream,
    Cancel,
    Purge,
    Requests,
}

/// Requests of one row, key and endpoint.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Requests that may have passed, in the order of their arrivals.
    arrived: VecDeque<CountedRequest>,
    /// Number of unanswered requests.
    open: u64,
}

/// A request that may have been counted.
#[derive(Clone, Copy, Debug)]
struct CountedRequest {
    exchange: u64,
    arrived: EventTime,
    /// The latest time at which it was counted, if it certainly passed, in ms.
    passed_by_ms: Option<u64>,
}

impl CountedRequest {
    /// The latest time at which it may have been counted, in ms.
    fn counted_by_ms(&self, waits: bool) -> u64 {
        if waits { self.passed_by_ms.unwrap_or(u64::MAX) } else { self.arrived.ms }
    }
}

impl Row {
    fn of(operation: Operation) -> Option<Self> {
        Some(match operation {
            Operation::Run => Self::Run,
            Operation::RunSync => Self::RunSync,
            Operation::Status { .. } | Operation::StatusSync => Self::Status,
            Operation::Stream { .. } | Operation::Follow => Self::Stream,
            Operation::Cancel | Operation::Retry => Self::Cancel,
            Operation::Purge => Self::Purge,
            Operation::Requests { .. } => Self::Requests,
            _ => return None,
        })
    }

    fn rate(self, rates: &Rates) -> Rate {
        match self {
            Self::Run => rates.run,
            Self::RunSync => rates.runsync,
            Self::Status => rates.status,
            Self::Stream => rates.stream,
            Self::Cancel => rates.cancel,
            Self::Purge => rates.purge_queue,
            Self::Requests => rates.requests,
        }
    }
}

/// The key by which a row counts.
pub(super) type Counted = (u64, EndpointNo, Row);

impl Auditor {
    fn counted(&self, exchange: &Exchange) -> Option<(Counted, Rates)> {
        let rates = self.rules.rates?;
        Some(((exchange.owner, exchange.endpoint?, Row::of(exchange.operation)?), rates))
    }

    /// A request arrived.
    pub(super) fn limit_arrived(&mut self, id: u64, exchange: &Exchange) {
        let Some((counted, _)) = self.counted(exchange) else { return };
        let now = self.ledger.now;
        let window = self.windows.entry(counted).or_default();
        while window.arrived.front().is_some_and(|first| first.arrived.ms + 12 * WINDOW_MS <= now.ms) {
            window.arrived.pop_front();
        }
        window.arrived.push_back(CountedRequest { exchange: id, arrived: now, passed_by_ms: None });
        window.open += 1;
    }

    /// A request was answered, or never will be.
    pub(super) fn limit_settled(&mut self, id: u64, exchange: &Exchange, status: Option<u16>) {
        let (Some((counted, rates)), Some(arrived)) = (self.counted(exchange), exchange.arrived) else {
            return;
        };
        if exchange.sse.as_ref().is_some_and(SseState::has_passed) {
            return;
        }
        let rate = counted.2.rate(&rates);
        let missed_since_ms = self.missed_since_ms(arrived.ms);
        let waits = self.rules.requests_wait_for_owner;
        // A request that is not held up is counted when it arrives.
        let counted_by_ms = if waits { self.ledger.now.ms } else { arrived.ms };
        let endpoint = &self.model.endpoints[counted.1.0];
        let Some(window) = self.windows.get_mut(&counted) else { return };
        let open_before = window.open;
        window.open = window.open.saturating_sub(1);
        let Some(at) = window.arrived.iter().rposition(|other| other.exchange == id) else { return };
        match status {
            // Whether the request was counted is unknown.
            None | Some(401 | 503) => return,
            // Requests for a missing endpoint are not counted.
            Some(404) if endpoint.deleted.is_some() || !endpoint.is_created => return,
            Some(429) => {
                let before = |other: &&CountedRequest| {
                    (waits || other.arrived.seq <= arrived.seq)
                        && other.counted_by_ms(waits).saturating_add(WINDOW_MS) >= arrived.ms
                };
                let counted_before = window.arrived.iter().filter(before).count() as u64;
                let is_over =
                    counted_before > rate.per_10_s || rate.concurrent > 0 && open_before > rate.concurrent;
                let may_be_full = endpoint.settings.queue_length_max < u64::MAX && counted.2 <= Row::RunSync;
                let is_right = is_over
                    || may_be_full
                    || rate.concurrent > 0 && window.arrived.len() as u64 > rate.concurrent;
                let text = || {
                    format!(
                        "{}: 429 after {counted_before} requests, {open_before} concurrent",
                        exchange.path
                    )
                };
                self.ledger.check(Promise::NotLimited, is_right, text);
                window.arrived.remove(at);
                return;
            }
            Some(_) => window.arrived[at].passed_by_ms = Some(counted_by_ms),
        }
        // Counts of an ended server process are lost.
        let since = self.process_began.map_or(0, |began| began.seq);
        // A window that ends with this request holds each of those that were certainly counted in it.
        let in_window = |other: &&CountedRequest| {
            other.passed_by_ms.is_some_and(|by_ms| by_ms <= counted_by_ms)
                && other.arrived.seq >= since
                && other.arrived.ms + WINDOW_MS > counted_by_ms
        };
        let passed = window.arrived.iter().filter(in_window).count();
        let workers = endpoint.workers_most(missed_since_ms) as u64 * rates.requests_per_worker;
        let most = rate.per_10_s.max(workers);
        let text = || format!("{}: {passed} requests within 10 s, at most {most} may pass", exchange.path);
        self.ledger.check(Promise::Limited, passed as u64 <= most, text);
    }

    /// The time since which the server may not have noticed the end of a worker, in ms.
    fn missed_since_ms(&self, at_ms: u64) -> u64 {
        let recent_ms = at_ms.saturating_sub(self.rules.lease_ms() + WINDOW_MS);
        let (since_ms, until_ms) = self.leases_renewed;
        if until_ms >= recent_ms { since_ms.min(recent_ms) } else { recent_ms }
    }

    /// The server started or reloaded from its disk: every running job has a new lease.
    pub(super) fn leases_renewed(&mut self, since_ms: u64) {
        let recent_ms = since_ms.saturating_sub(self.rules.lease_ms() + WINDOW_MS);
        let (known_ms, until_ms) = self.leases_renewed;
        let is_chained = until_ms >= recent_ms;
        self.leases_renewed = (if is_chained { known_ms } else { recent_ms }, self.ledger.now.ms);
    }
}
