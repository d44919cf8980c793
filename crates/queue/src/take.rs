//! A worker asks for jobs.

use alloc::vec::Vec;

use longshore_model::{JobRow, Millis, WorkerId, limits};
use longshore_planted::{Bug, planted};

use crate::queue::{Outbox, SLICE};
use crate::{Queue, Reply, Signal, Take};

impl Queue {
    pub(crate) fn take(&mut self, now: Millis, take: &Take, out: &mut Outbox) -> Reply {
        self.greet(now, &take.worker, out);
        self.note_question(now, take, out);
        if take.says_busy == Some(false) {
            self.empty_handed(now, &take.worker, out);
        }
        let draining = self.workers.get(&take.worker).is_none_or(|worker| worker.draining);
        if (draining && !planted(Bug::DrainedWorkerTakes)) || self.settings.paused {
            return Reply::Taken(Vec::new());
        }
        Reply::Taken(self.hand_out(now, take, out))
    }

    /// The first question of a worker ends its start.
    fn note_question(&mut self, now: Millis, take: &Take, out: &mut Outbox) {
        let Some(worker) = self.workers.get_mut(&take.worker) else { return };
        worker.overlaps |= take.overlapping;
        // Nobody replaces a worker from outside: one that asks again although it was to be goes on.
        worker.draining &= worker.managed;
        if !core::mem::replace(&mut worker.asked, true) {
            worker.idle_since = now;
            self.workers.schedule(&take.worker, self.settings.lease_ms);
            out.signals.push(Signal::Demand);
        }
    }

    fn hand_out(&mut self, now: Millis, take: &Take, out: &mut Outbox) -> Vec<JobRow> {
        let mut taken = Vec::new();
        let slots = take.slots.clamp(1, limits::TAKE_SLOTS_MAX) as usize;
        let mut expired = 0;
        while taken.len() < slots {
            let Some(slot) = self.ready.first() else { break };
            if now < self.jobs[slot].delete_at() {
                self.start(slot, &take.worker, now, out);
                taken.push(self.jobs[slot].unpacked());
            } else if expired < SLICE {
                expired += 1;
                self.remove(slot, now, out);
            } else {
                // There may be a good job behind them all: ask again rather than wait for a new one.
                out.signals.push(Signal::Ready);
                break;
            }
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
        // With several takes open, the answer to another may be on its way.
        let dropped = if worker.overlaps { Vec::new() } else { worker.held.clone() };
        self.redeliver(dropped, now, out);
        self.workers.schedule(id, self.settings.lease_ms);
    }
}
