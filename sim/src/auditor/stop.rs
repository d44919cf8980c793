//! A job that is over stops running.

use super::Auditor;
use super::job::{Job, JobNo};
use super::job_view::history;
use super::promise::Promise;
use super::time_bounds::EventTime;
use super::worker::WorkerModel;

/// When somebody must look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// Does anybody still run this job, which was in this life then?
    Stop(JobNo, u32, u64),
    /// Can this job be forgotten?
    Forget(JobNo),
}

impl Auditor {
    /// The job is over: whoever runs it must stop.
    pub(super) fn watch_stop(&mut self, no: JobNo) {
        let now_ms = self.ledger.now.ms;
        let Some(job) = self.notes.get_mut(no) else { return };
        if job.life.is_stop_watched || job.deliveries.is_empty() && job.known.ms != now_ms {
            return;
        }
        job.life.is_stop_watched = true;
        let lives = job.lives;
        let due_ms = now_ms + self.rules.stopped_within_ms();
        self.due.insert((due_ms, Due::Stop(no, lives, now_ms)));
    }

    /// Does anybody still run this job?
    pub(super) fn check_stopped(&mut self, no: JobNo, lives: u32, since_ms: u64) {
        let now_ms = self.ledger.now.ms;
        let Some(job) = self.notes.get(no) else { return };
        let is_back = job.life.over.is_none_or(|(over, _)| over.ms > since_ms);
        if job.lives != lives || is_back || job.may_be_retried(job.life.began.0, self.ledger.now) {
            return;
        }
        let within_ms = self.rules.stopped_within_ms();
        if self.disturbed_ms + within_ms > now_ms && self.disturbed_ms >= since_ms {
            // Something went wrong meanwhile: the time begins anew.
            self.due.insert((self.disturbed_ms + within_ms + 1, Due::Stop(no, lives, since_ms)));
            return;
        }
        // Which workers it told to stop a server forgets with its process. One of which the next never hears may be
        // loading a model, as far as that one can tell: it is ended in half an hour, and must be gone at rest. A row
        // that names it says that it hangs; but the job may be long gone when somebody misses it.
        let is_unknown = |worker: &WorkerModel| {
            self.process_began.is_some_and(|began| {
                worker.heard < Some(began) && (since_ms < began.ms || self.may_be_deleted_before(job, began))
            })
        };
        let running = self.notes.workers.iter().find(|worker| {
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

    /// Whether the process before this one may have deleted the job. What was due later has a row when the next
    /// process begins.
    fn may_be_deleted_before(&self, job: &Job, began: EventTime) -> bool {
        let ended = self.process_ended.filter(|ended| ended.seq < began.seq);
        ended.is_some_and(|ended| self.may_be_past_its_time(job, ended))
    }

    pub(super) fn handler_began(&mut self, worker: &str, job: &str) {
        let now = self.ledger.now;
        let worker = self.notes.worker(worker);
        if let Some(job) = self.notes.find_job(job) {
            self.notes.workers[worker.0].running.push((job, now));
            let is_over = self.notes.get(job).is_some_and(|job| job.life.over.is_some());
            if is_over && let Some(notes) = self.notes.get_mut(job) {
                notes.life.is_stop_watched = false;
                self.watch_stop(job);
            }
        }
    }

    pub(super) fn handler_ended(&mut self, worker: &str, job: &str) {
        let worker = self.notes.worker(worker);
        if let Some(job) = self.notes.find_job(job) {
            let may_cling = self.may_be_over(job);
            self.notes.workers[worker.0].may_cling |= may_cling;
            let running = &mut self.notes.workers[worker.0].running;
            if let Some(at) = running.iter().position(|(known, _)| *known == job) {
                running.remove(at);
            }
        }
    }
}
