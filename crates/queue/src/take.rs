//! A worker asks for jobs.

use alloc::vec::Vec;

use longshore_model::{Millis, WorkerId, limits};

use crate::queue::Outbox;
use crate::{Queue, Reply, Signal, Take};

impl Queue {
    pub(crate) fn take(&mut self, now: Millis, take: &Take, out: &mut Outbox) -> Reply {
        self.greet(now, &take.worker, out);
        let first_question = match self.workers.get_mut(&take.worker) {
            Some(worker) => {
                worker.overlaps |= take.overlapping;
                !core::mem::replace(&mut worker.asked, true)
            }
            None => false,
        };
        if first_question {
            if let Some(worker) = self.workers.get_mut(&take.worker) {
                worker.idle_since = now;
            }
            self.workers.schedule(&take.worker, self.settings.lease_ms);
            out.signals.push(Signal::Demand);
        }
        if take.says_busy == Some(false) {
            self.empty_handed(now, &take.worker, out);
        }
        let draining = self.workers.get(&take.worker).is_none_or(|worker| worker.draining);
        if draining || self.settings.paused {
            return Reply::Taken(Vec::new());
        }
        Reply::Taken(self.hand_out(now, take, out))
    }

    fn hand_out(&mut self, now: Millis, take: &Take, out: &mut Outbox) -> Vec<longshore_model::JobRow> {
        let mut taken = Vec::new();
        let slots = take.slots.clamp(1, limits::TAKE_SLOTS_MAX) as usize;
        let mut expired = 0;
        while taken.len() < slots && expired < crate::queue::SLICE {
            let Some(slot) = self.ready.first() else { break };
            if self.jobs[slot].delete_at <= now {
                expired += 1;
                self.remove(slot, now, out);
                continue;
            }
            self.start(slot, &take.worker, now, out);
            taken.push(self.jobs[slot].clone());
        }
        if !taken.is_empty() {
            self.workers.schedule(&take.worker, self.settings.lease_ms);
            out.signals.push(Signal::Demand);
        }
        taken
    }

    /// A worker that asks with nothing in progress does not have what we think it has: the answer to an earlier
    /// take was lost, or it dropped a job without a word.
    fn empty_handed(&mut self, now: Millis, id: &WorkerId, out: &mut Outbox) {
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.stopping.clear();
        if worker.overlaps {
            return;
        }
        let held = worker.held.clone();
        self.workers.schedule(id, self.settings.lease_ms);
        for held in held.into_iter().rev() {
            self.redeliver(held, now, out);
        }
    }
}
