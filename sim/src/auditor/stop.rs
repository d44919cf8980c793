//! A terminal job stops running.

use super::Auditor;
use super::job::{Job, JobNo};
use super::job_view::history;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::worker::WorkerModel;

/// A check at a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Checks that the job, after this number of retries, has stopped running.
    Stop(JobNo, u32, u64),
    /// Forgets the job if possible.
    Forget(JobNo),
}

impl Auditor {
    /// The job has ended: its handler must stop.
    pub(super) fn watch_stop(&mut self, no: JobNo) {
        let now_ms = self.ledger.now.ms;
        let Some(job) = self.model.get_mut(no) else { return };
        if job.cycle.is_stop_watched || job.deliveries.is_empty() && job.known.ms != now_ms {
            return;
        }
        job.cycle.is_stop_watched = true;
        let retries_done = job.retries_done;
        let due_ms = now_ms + self.rules.stopped_within_ms();
        self.due.insert((due_ms, Due::Stop(no, retries_done, now_ms)));
    }

    /// Checks that no handler runs the job.
    pub(super) fn check_stopped(&mut self, no: JobNo, retries_done: u32, since_ms: u64) {
        let now_ms = self.ledger.now.ms;
        let Some(job) = self.model.get(no) else { return };
        let is_back = job.cycle.over.is_none_or(|(over, _)| over.ms > since_ms);
        if job.retries_done != retries_done
            || is_back
            || job.may_be_retried(job.cycle.began.0, self.ledger.now)
        {
            return;
        }
        let within_ms = self.rules.stopped_within_ms();
        if self.last_fault_ms + within_ms > now_ms && self.last_fault_ms >= since_ms {
            // A fault occurred meanwhile, so the time starts again.
            self.due.insert((self.last_fault_ms + within_ms + 1, Due::Stop(no, retries_done, since_ms)));
            return;
        }
        // A server's list of stops ends with its process. The next process cannot tell a worker that it never hears
        // from one that loads a model. That worker is ended after its start patience. A row that names the worker reveals the
        // hang, but the job may have been deleted.
        let is_unknown = |worker: &WorkerModel| {
            self.process_began.is_some_and(|began| {
                worker.last_success < Some(began)
                    && (since_ms < began.ms || self.may_be_deleted_before(job, began))
            })
        };
        let running = self.model.workers.iter().find(|worker| {
            worker.is_managed
                && !is_unknown(worker)
                && worker.running.iter().any(|(job, began)| *job == no && began.ms + within_ms < now_ms)
        });
        let text = || {
            let worker = running.map_or("", |worker| &worker.name);
            format!("{worker} still runs {}, which was over at {since_ms} ms; {}", job.id, history(job))
        };
        self.ledger.check(Promise::Stops, running.is_none(), text);
    }

    /// Whether the previous process may have deleted the job. A job that was due later still has a row when the
    /// next process starts.
    fn may_be_deleted_before(&self, job: &Job, began: EventTime) -> bool {
        let ended = self.process_ended.filter(|ended| ended.seq < began.seq);
        ended.is_some_and(|ended| self.may_be_past_its_time(job, ended))
    }

    pub(super) fn handler_began(&mut self, worker: &str, job: &str) {
        let now = self.ledger.now;
        let worker = self.model.worker(worker);
        if let Some(job) = self.model.find_job(job) {
            self.model.workers[worker.0].running.push((job, now));
            let is_over = self.model.get(job).is_some_and(|job| job.cycle.over.is_some());
            if is_over && let Some(entry) = self.model.get_mut(job) {
                entry.cycle.is_stop_watched = false;
                self.watch_stop(job);
            }
        }
    }

    pub(super) fn handler_ended(&mut self, worker: &str, job: &str) {
        let worker = self.model.worker(worker);
        if let Some(job) = self.model.find_job(job) {
            let may_be_stuck = self.may_be_over(job);
            self.model.workers[worker.0].may_be_stuck |= may_be_stuck;
            let running = &mut self.model.workers[worker.0].running;
            if let Some(at) = running.iter().position(|(known, _)| *known == job) {
                running.remove(at);
            }
        }
    }
}
