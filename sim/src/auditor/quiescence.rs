//! Checks that everything comes to rest after the faults have stopped.

use super::Auditor;
use super::job::{Job, JobNo};
use super::job_view::history;
use super::promise::Promise;
use super::wire::ShownState;

/// Longest time of a request, in ms: a wait of five minutes, and slack.
const HELD_MS_MAX: u64 = 360_000;

impl Auditor {
    /// Endpoint and id of each job whose end was not observed. A client should request them before the world ends.
    pub fn open_jobs(&self) -> Vec<(String, String)> {
        let open = self.model.jobs().filter(|(_, job)| self.is_open(job));
        open.map(|(_, job)| (self.model.endpoints[job.endpoint.0].name.to_string(), job.id.to_string()))
            .collect()
    }

    fn is_open(&self, job: &Job) -> bool {
        job.acknowledged.is_some()
            && !job.is_void
            && job.gone.is_none()
            && job.cycle.terminal.is_none()
            // The job has ended, and its output cannot be shown.
            && !self.has_damaged_output(job, self.ledger.now)
            && !self.model.endpoints[job.endpoint.0].may_be_deleted(self.ledger.now)
    }

    /// The world ends.
    pub(super) fn check_quiescence(&mut self) {
        let jobs: Vec<JobNo> = self.model.jobs().map(|(no, _)| no).collect();
        for no in jobs {
            self.check_job_at_rest(no);
        }
        self.check_health_at_rest();
        self.check_workers_at_rest();
        self.check_silent_ended();
        self.check_requests_at_rest();
    }

    fn check_job_at_rest(&mut self, no: JobNo) {
        let now = self.ledger.now;
        let Some(job) = self.model.get(no) else { return };
        let is_paused = self.model.endpoints[job.endpoint.0].is_paused();
        // A job past its ttl needs no observed end.
        let may_be_gone = self.clock.most(job.known, now) >= job.ttl.low_ms;
        // A job with low priority waits for a worker that other jobs start.
        let may_wait = job.submission.as_ref().is_none_or(|submission| submission.is_low_priority);
        let is_waiting = may_wait && job.cycle.seen.is_some_and(|(state, _, _)| state == ShownState::InQueue);
        let is_over = job.cycle.over.is_some();
        let is_open = self.is_open(job) && !is_over && !is_waiting && !may_be_gone && !is_paused;
        let text = || {
            format!("{}: its end was not observed; last seen {:?}; {}", job.id, job.cycle.seen, history(job))
        };
        self.ledger.check(Promise::AllEnd, !is_open, text);
        let is_deleted = self.model.endpoints[job.endpoint.0].may_be_deleted(now);
        let text = || format!("{}: {:?}; {}", job.id, job.webhook, history(job));
        let is_owed = !is_deleted && self.has_pending_webhook(job);
        self.ledger.check(Promise::WebhookMade, !is_owed, text);
    }

    fn check_workers_at_rest(&mut self) {
        for worker in &self.model.workers {
            let running: Vec<&str> =
                worker.running.iter().filter_map(|(no, _)| self.model.get(*no)).map(|job| &*job.id).collect();
            let is_done = running.is_empty() || !worker.is_managed;
            let text = || format!("{} still runs {running:?}", worker.name);
            self.ledger.check(Promise::AllStopped, is_done, text);
        }
        for endpoint in &self.model.endpoints {
            if endpoint.settings.is_external {
                continue;
            }
            let living = endpoint.workers.iter().filter(|no| {
                let worker = &self.model.workers[no.0];
                worker.is_managed && worker.ended.is_none()
            });
            let living = living.count() as u64;
            let wanted = match endpoint.workers_min {
                _ if endpoint.is_deleted => 0,
                Some(wanted) if endpoint.is_created && endpoint.deleted.is_none() => {
                    wanted.min(endpoint.settings.workers_max.high)
                }
                _ => continue,
            };
            let text = || format!("{}: {living} workers live instead of {wanted}", endpoint.name);
            self.ledger.check(Promise::FleetAtMinimum, living == wanted, text);
        }
    }

    fn check_requests_at_rest(&mut self) {
        let now = self.ledger.now;
        let mut waiting: Vec<_> = self.exchanges.iter().collect();
        waiting.sort_unstable_by_key(|(id, _)| **id);
        for (id, exchange) in waiting {
            let held_ms = now.ms - exchange.sent.ms;
            let text = || format!("request {id}, {}, is held since {held_ms} ms", exchange.path);
            self.ledger.check(Promise::AllAnswered, held_ms < HELD_MS_MAX || exchange.is_slow, text);
        }
    }
}
