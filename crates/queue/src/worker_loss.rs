//! Lost and stuck workers: a worker exited, its lease ended, or it did not stop a job within the stop grace.

use alloc::string::String;

use longshore_model::{AttemptEnd, JobId, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::transitions::RequeueCause;
use crate::{Effects, Queue, Signal};

impl Queue {
    /// Removes a worker that has exited. Its jobs are requeued at the front in their previous order.
    ///
    /// With `counts_retry` each requeue counts as a retry: after a crash, but not after a stop that the server requested.
    /// A job without retries left fails, and its error ends with `reason`: exit code, signal, last log lines. Only the load
    /// signal is sent for an unknown worker.
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

    /// Requeues the jobs of a worker that is lost or, without `counts`, was stopped by the server.
    fn requeue_all(&mut self, now: Millis, id: &WorkerId, counts: bool, reason: &str, out: &mut Effects) {
        let mut held = self.workers.get(id).map(|worker| worker.held.clone()).unwrap_or_default();
        self.sort_last_first(&mut held);
        let end = if counts { AttemptEnd::WorkerLost } else { AttemptEnd::Drained };
        for held in held {
            if counts && !held.confirmed {
                // The worker may have crashed while reading the take reply, so the job is delivered alone next time.
                let row = self.jobs[held.slot].extras_mut();
                row.redeliveries = row.redeliveries.max(1);
            }
            self.requeue(held.slot, counts, &RequeueCause::AttemptEnded(end, reason), now, out);
        }
    }

    /// Renews every worker lease and stop grace. For the time after the process was suspended or its clock jumped, when
    /// requests of workers were not received.
    pub fn renew_leases(&mut self, now: Millis) {
        self.workers.renew_all(now, now + self.settings.stop_grace_ms);
        self.workers.schedule_all(self.settings.lease_ms);
    }

    /// Checks whether the lease or a stop grace of a worker is over, and plans the next check.
    pub(crate) fn check_worker(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        if worker.is_lease_over(now, self.settings.lease_ms) {
            let last_contact_s = now.since(worker.last_contact) / 1000;
            self.end_lease(now, id, last_contact_s, out);
        } else {
            self.check_stop_grace(now, id, out);
        }
        self.workers.schedule(id, self.settings.lease_ms);
    }

    /// Marks stops whose grace is over. A worker that pings and runs other jobs is stuck only if its next ping still lists
    /// the job; any other worker is stuck now.
    fn check_stop_grace(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        let ping_decides = worker.pings && !worker.held.is_empty();
        let mut stuck = None;
        for stopping in &mut worker.stopping {
            if stopping.by <= now && !stopping.overdue {
                stopping.overdue = true;
                stuck = Some(stopping.job);
            }
        }
        if let (Some(job), false) = (stuck, ping_decides) {
            self.replace_stuck(id, job, out);
        }
    }

    /// Drains a managed worker that is stuck in a stopped job and signals its replacement. Of an external worker only the
    /// pending stops are dropped: it cannot be replaced.
    pub(crate) fn replace_stuck(&mut self, id: &WorkerId, job: JobId, out: &mut Effects) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.stopping.retain(|stopping| !stopping.overdue);
        if worker.managed {
            worker.draining = true;
            let reason = alloc::format!("job {job} was not stopped within the stop grace");
            out.signals.push(Signal::ReplaceWorker(id.clone(), reason));
        }
    }

    /// Requeues the jobs of a worker whose lease is over. A managed worker is drained and its replacement signalled. An
    /// external one is drained, or removed if its last contact is long enough ago.
    fn end_lease(&mut self, now: Millis, id: &WorkerId, last_contact_s: u64, out: &mut Effects) {
        let reason: String =
            alloc::format!("lease of worker {id} expired, last contact {last_contact_s} s ago");
        self.requeue_all(now, id, true, &reason, out);
        let Some(worker) = self.workers.get_mut(id) else { return };
        if worker.managed && planted(Bug::HungWorkerKept) {
            worker.pings = false;
            return;
        }
        if worker.managed {
            // The worker stays known, without jobs, until the fleet reports its exit.
            worker.draining = true;
            worker.pings = false;
            worker.stopping.clear();
            out.signals.push(Signal::ReplaceWorker(id.clone(), reason));
        } else if now < worker.removed_at(self.settings.lease_ms) {
            // A take of the worker may still be parked and get a job; the queue must then know that the worker pings.
            // Another take ends the draining.
            worker.draining = true;
            worker.has_taken = false;
            worker.stopping.clear();
            out.signals.push(Signal::LoadChanged);
        } else {
            self.workers.remove(id);
            out.signals.push(Signal::LoadChanged);
        }
    }
}
