//! From rows to a running machine.

use longshore_model::{JobRow, JobState, Millis};
use longshore_planted::{Bug, planted};

use crate::Queue;
use crate::jobs::Slot;
use crate::packed::PackedRow;

impl Queue {
    /// Takes in a stored job; call it for every row, in any order, before the first verb.
    pub fn restore(&mut self, mut row: JobRow, now: Millis) {
        self.last_seq = self.last_seq.max(row.key.seq);
        self.counters.reserved_seq = self.counters.reserved_seq.max(row.key.seq);
        self.taken_counters = self.counters;
        self.order_first = self.order_first.min(row.order);
        self.order_last = self.order_last.max(row.order);
        self.enqueued_last = self.enqueued_last.max(row.enqueued_at);
        let (state, low_priority, order) = (row.state, row.low_priority, row.order);
        if let Some(worker) = &row.worker {
            self.workers.remember(worker);
        }
        let (by, carried) = (self.jobs.submitters.enter(row.submitter), row.carried.take());
        let slot = self.jobs.insert(PackedRow::new(row, by));
        if let Some(carried) = carried {
            self.jobs.carry(slot, carried);
        }
        let purged = self.is_purged(&self.jobs[slot]);
        if !planted(Bug::KeysNotLoaded) {
            self.restore_idempotency(slot);
        }
        match state {
            JobState::InQueue if purged => self.purging.insert(low_priority, order, slot),
            JobState::InQueue => self.ready.insert(low_priority, order, slot),
            JobState::InProgress => {
                self.running += 1;
                if !planted(Bug::LeaseNotLoaded) {
                    self.grant_fresh_lease(slot, now);
                }
            }
            _ => {}
        }
        if state != JobState::InProgress || !planted(Bug::TimeoutNotLoaded) {
            self.schedule(slot);
        }
    }

    /// Takes over the workers of a queue that was dropped, and not with its server: they are watched as before.
    pub fn adopt_workers(&mut self, dropped: &Self, now: Millis) {
        self.workers.take_over(&dropped.workers, now, self.settings.lease_ms);
    }

    /// The newest job with a key has it: an older one is past its time and only waits for its webhook.
    fn restore_idempotency(&mut self, slot: Slot) {
        let Some(promise) = self.jobs.promise(slot) else { return };
        let newer = |other: Slot| self.jobs[other].key() > self.jobs[slot].key();
        if !self.idempotent.find(&promise).is_some_and(newer) {
            self.idempotent.insert(promise, slot);
        }
    }

    /// Puts the running job back into its worker's hands.
    fn grant_fresh_lease(&mut self, slot: Slot, now: Millis) {
        let row = &self.jobs[slot];
        let (job, Some(id)) = (row.id, row.worker().cloned()) else { return };
        self.workers.touch(&id, now, self.settings.lease_ms);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.asked = true;
            // Nobody knows yet whether it pings; if it is silent now, it is gone.
            worker.pings = true;
        }
        self.workers.hold(&id, slot, job);
        // What else the worker had meanwhile is forgotten.
        if let Some(held) = self.workers.get_mut(&id).and_then(|worker| worker.holds(slot)) {
            held.alone = false;
        }
        self.workers.schedule(&id, self.settings.lease_ms);
    }
}
