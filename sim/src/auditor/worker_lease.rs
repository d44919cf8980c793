//! What the server can know of workers: when it heard of them, and what they said they have.

use super::Auditor;
use super::exchange::Exchange;
use super::job::{JobNo, LossEvidence, WorkerNo};
use super::operation::Operation;
use super::time_bounds::{EventTime, Span};

impl Auditor {
    /// A request of a worker arrived.
    pub(super) fn spoke(&mut self, exchange: &Exchange, worker: WorkerNo) {
        let is_silent = self.is_silent(worker, self.rules.lease_ms());
        let now = self.ledger.now;
        let notes = &mut self.notes.workers[worker.0];
        notes.spoke = Some(now);
        notes.heard.get_or_insert(now);
        notes.unfit |= exchange.operation == Operation::Ping { unfit: true };
        if is_silent {
            notes.silent = Some(now);
        }
        match exchange.operation {
            Operation::Take { idle: true } => notes.denied = Some(now),
            Operation::Ping { unfit: false } => {
                notes.pings = [notes.pings[1], Some(Span { from: now, until: None })];
            }
            _ => {}
        }
        if notes.endpoint.is_none()
            && exchange.operation != Operation::StopPoll
            && let Some(endpoint) = exchange.endpoint
        {
            notes.endpoint = Some(endpoint);
            self.notes.endpoints[endpoint.0].workers.push(worker);
        }
        for no in exchange.listed.iter().copied().chain(exchange.job) {
            if let Some(job) = self.notes.get_mut(no) {
                job.is_strayed |= !job.was_given_to(worker);
            }
        }
        match exchange.operation {
            _ if is_silent => self.doubt(worker, None, |doubts| doubts.silent = true),
            Operation::Take { idle: true } => self.doubt(worker, None, |doubts| doubts.denied = true),
            Operation::Ping { unfit: true } => self.doubt(worker, None, |doubts| doubts.silent = true),
            Operation::Ping { unfit: false } => {
                self.note_clinging(worker, &exchange.listed);
                self.listed(worker, &exchange.listed);
            }
            Operation::Done | Operation::Chunk => {
                if let Some(job) = exchange.job {
                    self.confirmed(worker, job);
                }
            }
            _ => {}
        }
        if is_silent && matches!(exchange.operation, Operation::Take { idle: true }) {
            self.doubt(worker, None, |doubts| doubts.denied = true);
        }
    }

    /// A request of a worker was answered well. Whoever is turned away is told so, and is as silent as before.
    pub(super) fn heard(&mut self, exchange: &Exchange) {
        if let Some(worker) = exchange.worker {
            let notes = &mut self.notes.workers[worker.0];
            notes.heard = notes.heard.max(exchange.arrived);
        }
    }

    /// A ping was answered: by now the server has looked at it.
    pub(super) fn ping_answered(&mut self, exchange: &Exchange) {
        let (Some(worker), Some(arrived)) = (exchange.worker, exchange.arrived) else { return };
        let now = self.ledger.now;
        let mut pings = self.notes.workers[worker.0].pings.iter_mut().flatten();
        if let Some(ping) = pings.find(|ping| ping.from.seq == arrived.seq) {
            ping.until = Some(now);
        }
    }

    /// Whether the server may take this worker for lost, because it was silent until now.
    pub(super) fn is_silent(&self, worker: WorkerNo, lease_ms: u64) -> bool {
        let now = self.ledger.now;
        let Some(heard) = self.notes.workers[worker.0].heard else { return true };
        let since = self.process_began.filter(|began| began.seq > heard.seq).unwrap_or(heard);
        let until = self.process_ended.filter(|ended| ended.seq > since.seq).unwrap_or(now);
        let passed_ms =
            (until.ms - since.ms).max(self.clock.most(since, until).saturating_sub(since.wall_ms));
        passed_ms >= lease_ms
    }

    /// The server process ended: what it did not hear by then it did not hear.
    pub(super) fn note_silence(&mut self) {
        let lease_ms = self.rules.lease_ms();
        for worker in 0..self.notes.workers.len() {
            if !self.notes.workers[worker].held.is_empty() && self.is_silent(WorkerNo(worker), lease_ms) {
                self.doubt(WorkerNo(worker), None, |doubts| doubts.silent = true);
            }
        }
    }

    /// There is a reason for which the server may take back what this worker has: one job, or all of them.
    pub(super) fn doubt(
        &mut self,
        worker: WorkerNo,
        only: Option<JobNo>,
        change: impl Fn(&mut LossEvidence),
    ) {
        let held = std::mem::take(&mut self.notes.workers[worker.0].held);
        for no in &held {
            if only.is_some_and(|only| only != *no) {
                continue;
            }
            let Some(job) = self.notes.get_mut(*no) else { continue };
            if let Some(delivery) = job.deliveries.iter_mut().rfind(|delivery| delivery.worker == worker) {
                change(&mut delivery.doubts);
            }
        }
        self.notes.workers[worker.0].held = held;
    }

    /// A process of a worker ended.
    pub(super) fn worker_ended(&mut self, name: &str, by_server: bool) {
        let now = self.ledger.now;
        let worker = self.notes.worker(name);
        if self.is_silent(worker, self.rules.lease_ms()) {
            self.doubt(worker, None, |doubts| doubts.silent = true);
        }
        if by_server {
            self.check_spared(worker);
        }
        if self.notes.workers[worker.0].is_managed {
            // The end of any other the server cannot see.
            self.doubt(worker, None, |doubts| doubts.ended = Some((now, by_server)));
        }
        let notes = &mut self.notes.workers[worker.0];
        notes.ended = Some((now, by_server));
        if notes.is_managed {
            notes.held.clear();
        }
        if let Some(endpoint) = notes.endpoint {
            let endpoint = &mut self.notes.endpoints[endpoint.0];
            endpoint.workers.retain(|known| *known != worker);
            endpoint.left_ms.push_back(now.ms);
        }
    }

    fn listed(&mut self, worker: WorkerNo, listed: &[JobNo]) {
        let held = std::mem::take(&mut self.notes.workers[worker.0].held);
        for no in &held {
            let Some(job) = self.notes.get_mut(*no) else { continue };
            let Some(delivery) = job.deliveries.iter_mut().rfind(|delivery| delivery.worker == worker) else {
                continue;
            };
            if listed.contains(no) {
                delivery.confirmed = true;
                // After two without it the server may have taken it back, and this does not undo that.
                delivery.unlisted = if delivery.unlisted < 2 { 0 } else { delivery.unlisted };
            } else {
                delivery.unlisted += 1;
                delivery.doubts.denied |= delivery.unlisted >= 2;
            }
        }
        self.notes.workers[worker.0].held = held;
    }

    fn confirmed(&mut self, worker: WorkerNo, job: JobNo) {
        let Some(job) = self.notes.get_mut(job) else { return };
        if let Some(delivery) = job.deliveries.iter_mut().rfind(|delivery| delivery.worker == worker) {
            delivery.confirmed = true;
        }
    }

    /// This worker does not have this job any more.
    pub(super) fn let_go(&mut self, worker: WorkerNo, job: JobNo) {
        self.notes.workers[worker.0].held.retain(|held| *held != job);
    }

    /// Whether `then` was long enough ago.
    pub(super) fn is_past(&self, then: EventTime, by_ms: u64) -> bool {
        self.ledger.now.ms - then.ms >= by_ms
    }
}
