//! What the server can know of workers: the times of their requests, and the jobs that they listed.

use super::Auditor;
use super::exchange::Exchange;
use super::job::{JobNo, LossEvidence, WorkerNo};
use super::operation::Operation;
use super::time_bounds::{EventTime, Span};

impl Auditor {
    /// A request of a worker arrived.
    pub(super) fn worker_request_arrived(&mut self, exchange: &Exchange, worker: WorkerNo) {
        let is_silent = self.is_silent(worker, self.rules.lease_ms());
        let now = self.ledger.now;
        let entry = &mut self.model.workers[worker.0];
        entry.last_request = Some(now);
        entry.last_success.get_or_insert(now);
        entry.unfit |= exchange.operation == Operation::Ping { unfit: true };
        if is_silent {
            entry.silent = Some(now);
        }
        match exchange.operation {
            Operation::Take { idle: true } => entry.denied = Some(now),
            Operation::Ping { unfit: false } => {
                entry.pings = [entry.pings[1], Some(Span { from: now, until: None })];
            }
            _ => {}
        }
        if entry.endpoint.is_none()
            && exchange.operation != Operation::StopPoll
            && let Some(endpoint) = exchange.endpoint
        {
            entry.endpoint = Some(endpoint);
            self.model.endpoints[endpoint.0].workers.push(worker);
        }
        for no in exchange.listed.iter().copied().chain(exchange.job) {
            if let Some(job) = self.model.get_mut(no) {
                job.has_foreign_post |= !job.was_given_to(worker);
            }
        }
        match exchange.operation {
            _ if is_silent => self.add_evidence(worker, None, |evidence| evidence.silent = true),
            Operation::Take { idle: true } => {
                self.add_evidence(worker, None, |evidence| evidence.denied = true);
            }
            Operation::Ping { unfit: true } => {
                self.add_evidence(worker, None, |evidence| evidence.silent = true);
            }
            Operation::Ping { unfit: false } => {
                self.note_stuck(worker, &exchange.listed);
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
            self.add_evidence(worker, None, |evidence| evidence.denied = true);
        }
    }

    /// A request of a worker succeeded. A refused request does not count as contact.
    pub(super) fn worker_request_succeeded(&mut self, exchange: &Exchange) {
        if let Some(worker) = exchange.worker {
            let entry = &mut self.model.workers[worker.0];
            entry.last_success = entry.last_success.max(exchange.arrived);
        }
    }

    /// A ping was answered, so the server has processed it.
    pub(super) fn ping_answered(&mut self, exchange: &Exchange) {
        let (Some(worker), Some(arrived)) = (exchange.worker, exchange.arrived) else { return };
        let now = self.ledger.now;
        let mut pings = self.model.workers[worker.0].pings.iter_mut().flatten();
        if let Some(ping) = pings.find(|ping| ping.from.seq == arrived.seq) {
            ping.until = Some(now);
        }
    }

    /// Whether the server may consider this worker lost because of its silence.
    pub(super) fn is_silent(&self, worker: WorkerNo, lease_ms: u64) -> bool {
        let now = self.ledger.now;
        let Some(last_success) = self.model.workers[worker.0].last_success else { return true };
        let since = self.process_began.filter(|began| began.seq > last_success.seq).unwrap_or(last_success);
        let until = self.process_ended.filter(|ended| ended.seq > since.seq).unwrap_or(now);
        let passed_ms =
            (until.ms - since.ms).max(self.clock.most(since, until).saturating_sub(since.wall_ms));
        passed_ms >= lease_ms
    }

    /// The server process ended: requests that it had not processed are lost.
    pub(super) fn note_silent_workers(&mut self) {
        let lease_ms = self.rules.lease_ms();
        for worker in 0..self.model.workers.len() {
            if !self.model.workers[worker].held.is_empty() && self.is_silent(WorkerNo(worker), lease_ms) {
                self.add_evidence(WorkerNo(worker), None, |evidence| evidence.silent = true);
            }
        }
    }

    /// Records a reason for which the server may requeue one job of this worker, or all of them.
    pub(super) fn add_evidence(
        &mut self,
        worker: WorkerNo,
        only: Option<JobNo>,
        change: impl Fn(&mut LossEvidence),
    ) {
        let held = std::mem::take(&mut self.model.workers[worker.0].held);
        for no in &held {
            if only.is_some_and(|only| only != *no) {
                continue;
            }
            let Some(job) = self.model.get_mut(*no) else { continue };
            if let Some(delivery) = job.deliveries.iter_mut().rfind(|delivery| delivery.worker == worker) {
                change(&mut delivery.evidence);
            }
        }
        self.model.workers[worker.0].held = held;
    }

    /// A worker's process ended.
    pub(super) fn worker_ended(&mut self, name: &str, by_server: bool) {
        let now = self.ledger.now;
        let worker = self.model.worker(name);
        if self.is_silent(worker, self.rules.lease_ms()) {
            self.add_evidence(worker, None, |evidence| evidence.silent = true);
        }
        if by_server {
            self.check_no_running_job(worker);
        }
        if self.model.workers[worker.0].is_managed {
            // The server cannot observe the end of other workers.
            self.add_evidence(worker, None, |evidence| evidence.ended = Some((now, by_server)));
        }
        let entry = &mut self.model.workers[worker.0];
        entry.ended = Some((now, by_server));
        if entry.is_managed {
            entry.held.clear();
        }
        if let Some(endpoint) = entry.endpoint {
            let endpoint = &mut self.model.endpoints[endpoint.0];
            endpoint.workers.retain(|known| *known != worker);
            endpoint.left_ms.push_back(now.ms);
        }
    }

    fn listed(&mut self, worker: WorkerNo, listed: &[JobNo]) {
        let held = std::mem::take(&mut self.model.workers[worker.0].held);
        for no in &held {
            let Some(job) = self.model.get_mut(*no) else { continue };
            let Some(delivery) = job.deliveries.iter_mut().rfind(|delivery| delivery.worker == worker) else {
                continue;
            };
            if listed.contains(no) {
                delivery.confirmed = true;
                // After two pings without the job the server may have requeued it, which this ping does not undo.
                delivery.unlisted = if delivery.unlisted < 2 { 0 } else { delivery.unlisted };
            } else {
                delivery.unlisted += 1;
                delivery.evidence.denied |= delivery.unlisted >= 2;
            }
        }
        self.model.workers[worker.0].held = held;
    }

    fn confirmed(&mut self, worker: WorkerNo, job: JobNo) {
        let Some(job) = self.model.get_mut(job) else { return };
        if let Some(delivery) = job.deliveries.iter_mut().rfind(|delivery| delivery.worker == worker) {
            delivery.confirmed = true;
        }
    }

    /// Records that this worker has released this job.
    pub(super) fn released(&mut self, worker: WorkerNo, job: JobNo) {
        self.model.workers[worker.0].held.retain(|held| *held != job);
    }

    /// Whether `then` is more than `by_ms` ago.
    pub(super) fn is_past(&self, then: EventTime, by_ms: u64) -> bool {
        self.ledger.now.ms - then.ms >= by_ms
    }
}
