//! A worker is gone, or behaves as if it were.

use alloc::string::String;

use longshore_model::{JobId, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::transitions::Loss;
use crate::{Effects, Queue, Signal};

impl Queue {
    /// Removes a worker that has ended. Its jobs go back to the front of the queue in their old order.
    ///
    /// With `counts_retry` they count a retry each: a crash does, a stop that the server asked for does not. A job without
    /// retries left fails with `reason`: exit code, signal, last log lines.
    pub fn lose_worker(
        &mut self,
        now: Millis,
        id: &WorkerId,
        counts_retry: bool,
        reason: &str,
        out: &mut Effects,
    ) {
        self.requeue_all(now, id, counts_retry, reason, out);
        self.workers.remove(id);
        out.signals.push(Signal::LoadChanged);
    }

    fn requeue_all(&mut self, now: Millis, id: &WorkerId, counts: bool, reason: &str, out: &mut Effects) {
        let mut held = self.workers.get(id).map(|worker| worker.held.clone()).unwrap_or_default();
        self.sort_last_first(&mut held);
        for held in held {
            if counts && !held.confirmed {
                // What ended the worker may have been the answer that it came in.
                let row = self.jobs[held.slot].extras_mut();
                row.redeliveries = row.redeliveries.max(1);
            }
            self.requeue(held.slot, counts, &Loss::Worker(reason), now, out);
        }
    }

    /// Gives every worker a fresh lease, and a fresh grace for the jobs that it was told to stop: for when the server
    /// itself was held up, because the computer slept, the process was stopped or its clock jumped.
    pub fn renew_leases(&mut self, now: Millis) {
        self.workers.renew_all(now, now + self.settings.stop_grace_ms);
        self.workers.schedule_all(self.settings.lease_ms);
    }

    /// Looks at a worker whose lease or grace may have ended.
    pub(crate) fn check_worker(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        if worker.is_silent(now, self.settings.lease_ms) {
            let silent_s = now.since(worker.seen_at) / 1000;
            self.end_lease(now, id, silent_s, out);
        } else {
            self.check_stop_grace(now, id, out);
        }
        self.workers.schedule(id, self.settings.lease_ms);
    }

    /// The time to let go of a stopped job is over. Where other jobs are at stake, the worker's next ping
    /// decides: it may have let go since the last one.
    fn check_stop_grace(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        let ping_decides = worker.pings && !worker.held.is_empty();
        let mut clings = None;
        for stopping in &mut worker.stopping {
            if stopping.by <= now && !stopping.overdue {
                stopping.overdue = true;
                clings = Some(stopping.job);
            }
        }
        if let (Some(job), false) = (clings, ping_decides) {
            self.replace_stuck(id, job, out);
        }
    }

    /// The worker still runs a job that it was told to stop. Only one that we run can be replaced.
    pub(crate) fn replace_stuck(&mut self, id: &WorkerId, job: JobId, out: &mut Effects) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.stopping.retain(|stopping| !stopping.overdue);
        if worker.managed {
            worker.draining = true;
            let why = alloc::format!("it did not stop job {job} within the grace period");
            out.signals.push(Signal::ReplaceWorker(id.clone(), why));
        }
    }

    fn end_lease(&mut self, now: Millis, id: &WorkerId, silent_s: u64, out: &mut Effects) {
        let reason: String = alloc::format!("worker {id} was silent for {silent_s} s");
        self.requeue_all(now, id, true, &reason, out);
        let Some(worker) = self.workers.get_mut(id) else { return };
        if worker.managed && planted(Bug::HungWorkerKept) {
            worker.pings = false;
            return;
        }
        if worker.managed {
            // It stays on the list, without jobs, until its launcher has ended it.
            worker.draining = true;
            worker.pings = false;
            worker.stopping.clear();
            out.signals.push(Signal::ReplaceWorker(id.clone(), reason));
        } else if now < worker.forgotten_at(self.settings.lease_ms) {
            // A take of its may still be held, and be answered with a job: that it pings must be known then. Asking
            // again makes it a worker like any other.
            worker.draining = true;
            worker.asked = false;
            worker.stopping.clear();
            out.signals.push(Signal::LoadChanged);
        } else {
            self.workers.remove(id);
            out.signals.push(Signal::LoadChanged);
        }
    }
}
