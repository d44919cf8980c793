//! Checks of the workers that the server starts and stops.

use super::Auditor;
use super::endpoint::TemplateChange;
use super::exchange::Exchange;
use super::job::{EndpointNo, JobNo, WorkerNo};
use super::job_view::history;
use super::outages::SLACK_MS;
use super::outcome_cause::Causes;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::worker::WorkerModel;

/// How long a worker may run before its first request, in ms.
const FIRST_REQUEST_MS_MAX: u64 = 10 * 60 * 1_000;

impl Auditor {
    pub(super) fn worker_started(&mut self, worker: &str, endpoint: &str) {
        let now = self.ledger.now;
        let endpoint = self.model.endpoint(endpoint, &self.rules);
        let worker = self.model.worker(worker);
        let is_managed = !self.model.endpoints[endpoint.0].settings.is_external;
        let entry = &mut self.model.workers[worker.0];
        entry.endpoint = Some(endpoint);
        entry.started = Some(now);
        entry.is_managed = is_managed;
        self.model.endpoints[endpoint.0].workers.push(worker);
        if is_managed {
            self.check_fleet(endpoint);
        }
    }

    /// Checks the number of workers. Stopping workers count as well.
    fn check_fleet(&mut self, endpoint: EndpointNo) {
        let entry = &self.model.endpoints[endpoint.0];
        let is_living = |no: &&WorkerNo| {
            let worker = &self.model.workers[no.0];
            worker.is_managed && worker.ended.is_none()
        };
        let living = entry.workers.iter().filter(is_living).count() as u64;
        let most = entry.settings.workers_max.high;
        let text = || format!("{}: {living} workers, at most {most} may live", entry.name);
        self.ledger.check(Promise::FleetBounded, !entry.is_created || living <= most, text);
    }

    /// The server stopped this worker, which may be running a job.
    pub(super) fn check_no_running_job(&mut self, worker: WorkerNo) {
        let now = self.ledger.now;
        let entry = &self.model.workers[worker.0];
        let Some(endpoint) = entry.endpoint.filter(|_| entry.is_managed && !entry.running.is_empty()) else {
            return;
        };
        let may_go = entry.may_be_stuck
            || entry.unfit
            || self.model.endpoints[endpoint.0].may_be_deleted(now)
            || !entry.running.iter().all(|(job, _)| self.certainly_runs(*job, worker));
        let text = || {
            let job = entry.running.first().and_then(|(job, _)| self.model.get(*job));
            format!("{} was ended with its job {}", entry.name, job.map_or(String::new(), history))
        };
        self.ledger.check(Promise::WorkersDrained, may_go, text);
    }

    /// Whether the server must assume that this worker runs this job.
    fn certainly_runs(&self, no: JobNo, worker: WorkerNo) -> bool {
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return false };
        let Some(holder) = job.holder().filter(|holder| holder.worker == worker) else { return false };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        holder.confirmed
            && !holder.evidence.any()
            && holder.unlisted == 0
            && job.cycle.over.is_none()
            && !self.may_be_over(no)
            && endpoint.unknown_takes(holder.got, now) == endpoint.takes_open.len()
    }

    /// Whether the job may have ended before its worker did.
    pub(super) fn may_be_over(&self, no: JobNo) -> bool {
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return true };
        let endpoint = &self.model.endpoints[job.endpoint.0];
        let damaged = self.unread.damaged(&job.id);
        let causes = Causes { job, endpoint, clock: &self.clock, rules: &self.rules, damaged, limit: now };
        let is_expired = self.clock.most(job.known, now) >= job.ttl.low_ms;
        let is_ended = causes.earliest_end().is_some() || job.cycle.over.is_some();
        is_expired || is_ended || job.gone.is_some() || job.is_void || !job.retries.is_empty()
    }

    /// Records whether this worker may be replaced because it lists jobs that it was told to stop. The server
    /// believes the list, even if it names earlier jobs.
    pub(super) fn note_stuck(&mut self, worker: WorkerNo, listed: &[JobNo]) {
        let running = &self.model.workers[worker.0].running;
        let runs = |no: &JobNo| running.iter().any(|(job, _)| job == no);
        let may_be_stuck = listed.iter().any(|no| !runs(no) || self.may_be_over(*no));
        self.model.workers[worker.0].may_be_stuck |= may_be_stuck;
    }

    /// A worker that should have been replaced was given a job.
    pub(super) fn check_replaced(&mut self, exchange: &Exchange, worker: WorkerNo) {
        let (Some(endpoint), Some(asked)) = (exchange.endpoint, exchange.arrived) else { return };
        let (entry, worker) = (&self.model.endpoints[endpoint.0], &self.model.workers[worker.0]);
        let Some(TemplateChange { changed, answered }) = entry.template_changed.filter(|_| worker.is_managed)
        else {
            return;
        };
        let is_old = worker.started.is_some_and(|started| started.seq < changed.seq);
        // Until when old workers get jobs is not promised, and a new process first has to observe its workers.
        let has_heard = asked.ms >= answered.ms + SLACK_MS / 4
            && self.is_outage_free(asked.ms.saturating_sub(SLACK_MS / 4), asked.ms);
        let text = || {
            let (worker, changed_ms) = (&worker.name, changed.ms);
            format!("{}: {worker} is older than the change at {changed_ms} ms", exchange.path)
        };
        self.ledger.check(Promise::OldWorkersLeft, !(is_old && has_heard), text);
    }

    /// The world ends after a long phase without faults.
    pub(super) fn check_silent_ended(&mut self) {
        let now = self.ledger.now;
        for no in 0..self.model.workers.len() {
            let worker = &self.model.workers[no];
            let Some(started) = worker.started.filter(|_| worker.is_managed && worker.ended.is_none()) else {
                continue;
            };
            let is_kept = self.is_silent_since(WorkerNo(no), started, now) || self.is_waited_for(worker, now);
            let text =
                || format!("{} lives, and was last heard of at {:?}", worker.name, worker.last_request);
            self.ledger.check(Promise::SilentReplaced, !is_kept, text);
        }
    }

    /// Whether this worker was silent for longer than any timeout since the faults stopped, including a worker that
    /// the server adopted and that sent no request.
    fn is_waited_for(&self, worker: &WorkerModel, until: EventTime) -> bool {
        let (Some(quiet_since), Some(began)) = (self.quiet_since, self.process_began) else { return false };
        let last_request = worker.last_request.filter(|last_request| last_request.seq > began.seq);
        // A worker that took jobs and never pinged may be silent.
        let is_known =
            worker.pings.iter().flatten().any(|ping| ping.from.seq > began.seq && ping.until.is_some());
        let since_ms =
            quiet_since.ms.max(began.ms).max(last_request.map_or(0, |last_request| last_request.ms));
        let since_ms = worker.started.map_or(since_ms, |started| since_ms.max(started.ms));
        (last_request.is_none() || is_known)
            && until.ms > since_ms + FIRST_REQUEST_MS_MAX + self.rules.kill_grace_ms + SLACK_MS
    }
}
