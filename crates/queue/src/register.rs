//! What the launchers say of their workers: one is there, one is to get no more jobs.

use longshore_model::{Millis, WorkerId};

use crate::{Effects, Queue, Signal};

impl Queue {
    /// Registers a worker that our launcher started, or found alive after a restart. It counts before its first take.
    pub fn register_worker(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        self.touch_or_register(now, id, out);
        let had_jobs = self.workers.recall(id);
        if let Some(worker) = self.workers.get_mut(id) {
            // Silence from before does not count: nobody knew whose worker it is.
            worker.draining &= worker.managed;
            worker.managed = true;
            // One that had jobs before a restart is not loading its model: if it is silent now, it hangs.
            worker.asked |= had_jobs;
            worker.pings |= had_jobs;
            self.workers.schedule(id, self.settings.lease_ms);
        }
    }

    /// Gives the worker no more jobs. Those that it holds stay with it.
    pub fn drain_worker(&mut self, id: &WorkerId, out: &mut Effects) {
        if let Some(worker) = self.workers.get_mut(id) {
            worker.draining = true;
            out.signals.push(Signal::LoadChanged);
        }
    }
}
