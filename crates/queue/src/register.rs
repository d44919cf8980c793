//! What the launchers say of their workers: one is there, one is to get no more jobs.

use longshore_model::{Millis, WorkerId};

use crate::{Effects, Queue, Reply, Signal};

impl Queue {
    /// A launcher of ours runs this worker.
    pub(crate) fn register_worker(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) -> Reply {
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
        Reply::Done
    }

    /// The worker gets no more jobs.
    pub(crate) fn drain_worker(&mut self, id: &WorkerId, out: &mut Effects) -> Reply {
        if let Some(worker) = self.workers.get_mut(id) {
            worker.draining = true;
            out.signals.push(Signal::LoadChanged);
        }
        Reply::Done
    }
}
