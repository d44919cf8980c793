//! Checks of cancel, retry and purge.

use super::Auditor;
use super::endpoint::Purge;
use super::exchange::Exchange;
use super::job::{Deadline, JobNo, Pin};
use super::job_view::{JobView, history};
use super::operation::Operation;
use super::promise::Promise;
use super::time_bounds::{EventTime, Span};
use super::transitions::Transition;
use super::wire::{PurgeResult, ShownState};

/// Most purges of one endpoint that are remembered.
const PURGES_MAX: usize = 4_096;

impl Auditor {
    /// A request that may change jobs arrived.
    pub(super) fn change_arrived(&mut self, id: u64, exchange: &Exchange) {
        let now = self.ledger.now;
        let span = Span { from: now, until: None };
        if exchange.operation == Operation::Purge {
            let Some(endpoint) = exchange.endpoint else { return };
            let purges = &mut self.model.endpoints[endpoint.0].purges;
            if purges.len() == PURGES_MAX {
                purges.pop_front();
            }
            return purges.push_back(Purge { span, answered: None });
        }
        let Some(job) = exchange.job.and_then(|no| self.model.get_mut(no)).filter(|job| !job.is_void) else {
            return;
        };
        job.touched = now;
        match exchange.operation {
            Operation::Cancel => job.cancels.push(span),
            Operation::Retry => job.retries.push((id, span)),
            Operation::Status { ttl_ms: Some(ttl_ms) } => {
                if job.pin == Pin::None {
                    job.pin = Pin::Set;
                }
                job.ttl.widen(Deadline { low_ms: now.wall_ms + ttl_ms, high_ms: u64::MAX });
            }
            _ => {}
        }
    }

    /// The request was answered, or never will be. `until` is the last time at which it may take effect.
    pub(super) fn change_settled(&mut self, exchange: &Exchange, until: Option<EventTime>, is_refused: bool) {
        let Some(arrived) = exchange.arrived else { return };
        let settle = |span: &mut Span| {
            if span.from.seq == arrived.seq {
                span.until = until;
            }
        };
        if exchange.operation == Operation::Purge {
            let Some(endpoint) = exchange.endpoint else { return };
            let purges = &mut self.model.endpoints[endpoint.0].purges;
            if is_refused {
                purges.retain(|purge| purge.span.from.seq != arrived.seq);
            }
            return purges.iter_mut().rev().for_each(|purge| settle(&mut purge.span));
        }
        let Some(job) = exchange.job.and_then(|no| self.model.get_mut(no)) else { return };
        if is_refused {
            job.cancels.retain(|span| span.from.seq != arrived.seq);
            job.retries.retain(|(_, span)| span.from.seq != arrived.seq);
        }
        job.cancels.iter_mut().for_each(settle);
        job.retries.iter_mut().for_each(|(_, span)| settle(span));
    }

    /// A cancel was answered.
    pub(super) fn cancelled(&mut self, no: JobNo, arrived: EventTime, state: ShownState) {
        let Some(job) = self.model.get(no).filter(|job| !job.is_void) else { return };
        let text = || format!("{} is {state:?} after its cancel; {}", job.id, history(job));
        self.ledger.check(Promise::CancelEnds, state.is_terminal(), text);
        self.observe_job(&JobView { job: no, from: arrived, state, shown: None, what: "a cancel's answer" });
    }

    /// A status request with a new ttl was answered.
    pub(super) fn pinned(&mut self, no: JobNo, arrived: EventTime, ttl_ms: u64) {
        let now = self.ledger.now;
        let (low_ms, high_ms) =
            (self.clock.least(arrived, now) + ttl_ms, self.clock.most(arrived, now) + ttl_ms);
        let is_other_open = self.exchanges.values().any(|other| {
            other.job == Some(no)
                && matches!(other.operation, Operation::Status { ttl_ms: Some(_) } | Operation::Retry)
        });
        let Some(job) = self.model.get_mut(no).filter(|job| !job.is_void) else { return };
        let is_other_open = is_other_open || !job.retries.is_empty();
        job.renew(arrived, now, Deadline { low_ms, high_ms }, is_other_open);
    }

    /// A retry succeeded.
    pub(super) fn retried(&mut self, id: u64, no: JobNo, arrived: EventTime, state: ShownState) {
        let now = self.ledger.now;
        let Some(job) = self.model.get_mut(no).filter(|job| !job.is_void) else { return };
        let text = || format!("{} is {state:?} after its retry", job.id);
        self.ledger.check(Promise::Retryable, state == ShownState::InQueue, text);
        if let Some(gone) = job.gone.filter(|gone| gone.seq < arrived.seq) {
            let text =
                || format!("{} was retried, though it was gone at {} ms; {}", job.id, gone.ms, history(job));
            self.ledger.fail(Promise::Gone, text);
        }
        let own = job.retries.iter().position(|(exchange, _)| *exchange == id);
        let Some(own) = own else {
            // The new attempt was observed before the response arrived.
            job.cycle.began.1 = job.cycle.began.1.min(now);
            return self.renew_ttl(no, arrived);
        };
        job.retries.remove(own);
        let ended = job.cycle.terminal.as_ref().map(|terminal| terminal.state);
        let retryable = ended.is_none_or(|state| matches!(state, ShownState::Failed | ShownState::TimedOut));
        if !retryable && job.retries_done > 0 && arrived.seq < job.cycle.began.1.seq {
            // Of several retries in flight, each may have started the present cycle; the others belong to
            // unobserved earlier ones.
            return self.renew_ttl(no, arrived);
        }
        let may_differ = !job.retries.is_empty();
        let shown_since = job.cycle.over.map(|(over, _)| over).filter(|over| over.seq > arrived.seq);
        if let Some(over) = shown_since
            && !retryable
            && !may_differ
        {
            return self.retried_and_ended(no, arrived, over);
        }
        let text = || format!("{} was retried after {ended:?}; {}", job.id, history(job));
        self.ledger.check(Promise::Retryable, retryable || may_differ, text);
        let transition = match ended {
            Some(ShownState::Failed) => Some(Transition::RetriedFailed),
            Some(ShownState::TimedOut) => Some(Transition::RetriedTimedOut),
            _ => None,
        };
        if let Some(transition) = transition.filter(|_| !may_differ) {
            self.ledger.count_transition(transition);
        }
        let Some(job) = self.model.get_mut(no) else { return };
        job.begin_cycle(arrived, now);
        self.renew_ttl(no, arrived);
    }

    /// A retry succeeded, and the job was observed to end in a state that cannot be retried after the retry's
    /// arrival. So this is the end after the retry, seen first in a faster response, and the end before it was not
    /// observed. The observed end must be possible after the retry.
    fn retried_and_ended(&mut self, no: JobNo, arrived: EventTime, over: EventTime) {
        let Some(job) = self.model.get_mut(no) else { return };
        let Some(terminal) = job.cycle.terminal.take() else { return };
        let view =
            JobView { job: no, from: arrived, state: terminal.state, shown: None, what: "a retry's answer" };
        job.begin_cycle(arrived, over);
        job.cycle.terminal = Some(terminal);
        job.end_cycle(over, "its end was shown before the answer to its retry");
        // It is unknown which of the ends the receiver has been told.
        job.webhook.is_unsure = true;
        let from = self.check_cause(&view);
        if let Some(terminal) = self.model.get_mut(no).and_then(|job| job.cycle.terminal.as_mut()) {
            terminal.from = from;
        }
        self.watch_stop(no);
        self.renew_ttl(no, arrived);
    }

    fn renew_ttl(&mut self, no: JobNo, arrived: EventTime) {
        let now = self.ledger.now;
        let (least_ms, most_ms) = (self.clock.least(arrived, now), self.clock.most(arrived, now));
        let Some(job) = self.model.get_mut(no) else { return };
        let Some(ttl_ms) = job.submission.as_ref().map(|submission| submission.ttl_ms) else {
            job.ttl = Deadline::UNKNOWN;
            return;
        };
        let deadline = Deadline { low_ms: least_ms + ttl_ms, high_ms: most_ms + ttl_ms };
        let is_pin_open = self.exchanges.values().any(|other| {
            other.job == Some(no) && matches!(other.operation, Operation::Status { ttl_ms: Some(_) })
        });
        let Some(job) = self.model.get_mut(no) else { return };
        let was_renewed = job.renewed.is_some_and(|renewed| renewed.seq > arrived.seq);
        job.renew(arrived, now, deadline, is_pin_open);
        if job.pin == Pin::Set && !is_pin_open && !was_renewed {
            job.pin = Pin::None;
        }
    }

    /// A purge was answered.
    pub(super) fn purged(&mut self, exchange: &Exchange, result: &PurgeResult<'_>) {
        let (Some(endpoint), Some(arrived)) = (exchange.endpoint, exchange.arrived) else { return };
        let text = || format!("{}: status {:?}", exchange.path, result.status);
        self.ledger.check(Promise::WellFormed, result.status == "completed", text);
        let now = self.ledger.now;
        let entry = &mut self.model.endpoints[endpoint.0];
        if let Some(purge) = entry.purges.iter_mut().find(|purge| purge.span.from.seq == arrived.seq) {
            purge.answered = Some(now);
        }
        let entry = &self.model.endpoints[endpoint.0];
        let is_waiting = |no: &&JobNo| {
            let Some(job) = self.model.get(**no) else { return false };
            let is_over =
                job.cycle.over.is_some_and(|(over, _)| over.seq < arrived.seq) && job.retries.is_empty();
            !is_over && job.gone.is_none_or(|gone| gone.seq > arrived.seq)
        };
        let unknown = entry.unanswered_submits.len();
        let most = entry.jobs.iter().filter(is_waiting).count() + unknown;
        let text =
            || format!("{}: {} removed, and at most {most} can have waited", exchange.path, result.removed);
        self.ledger.check(Promise::Purged, result.removed <= most as u64, text);
    }

    /// Checks that a job which was certainly queued at a purge is not delivered afterwards.
    pub(super) fn check_not_purged(&mut self, no: JobNo, asked: EventTime) {
        let Some(job) = self.model.get(no) else { return };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let is_first = job.possible_deliveries().next().is_none();
        let Some(since) = job.acknowledged.filter(|_| is_first && job.retries.is_empty()) else { return };
        let since = since.max(job.cycle.began.1);
        for purge in &endpoint.purges {
            // A purge without a response may not be durable: the server may have been killed first.
            let Some(answered) = purge.answered.filter(|answered| answered.seq < asked.seq) else { continue };
            if purge.span.from.seq <= since.seq {
                continue;
            }
            // A take with a lost response may have taken the job meanwhile.
            let unknown = endpoint.may_be_taken_unobserved(since, asked);
            let text = || {
                format!(
                    "{} was handed out after the purge at {}..{} ms; {}",
                    job.id,
                    purge.span.from.ms,
                    answered.ms,
                    history(job)
                )
            };
            self.ledger.check(Promise::Purged, unknown, text);
        }
    }
}
