//! The verbs register-worker and drain-worker, which the fleet calls for its managed workers.

use longshore_model::{Millis, WorkerId};

use crate::{Effects, Queue, Signal};

impl Queue {
    /// Registers a managed worker: our launcher started it, or adopted it after a restart. The worker is known before its
    /// first request. Renews its lease.
    pub fn register_worker(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        self.touch_or_register(now, id, out);
        let had_jobs = self.workers.take_restored(id);
        if let Some(worker) = self.workers.get_mut(id) {
            // A drain at the end of its lease does not count: it applied to an external worker.
            worker.draining &= worker.managed;
            worker.managed = true;
            // A worker that had jobs before the restart has finished its start, so the lease applies to it.
            worker.has_taken |= had_jobs;
            worker.pings |= had_jobs;
            self.workers.schedule(id, self.settings.lease_ms);
        }
    }

    /// Drains the worker: it gets no further jobs, and keeps those that it runs. Nothing changes for an unknown worker.
    pub fn drain_worker(&mut self, id: &WorkerId, out: &mut Effects) {
        if let Some(worker) = self.workers.get_mut(id) {
            worker.draining = true;
            out.signals.push(Signal::LoadChanged);
        }
    }
}
