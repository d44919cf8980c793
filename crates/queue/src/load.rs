//! From rows to a running machine.

use longshore_model::{JobRow, JobState, Millis};

use crate::Queue;

impl Queue {
    /// Takes in a stored job; call it for every row, in any order, before the first command.
    pub fn restore(&mut self, row: JobRow, now: Millis) {
        self.last_seq = self.last_seq.max(row.key.seq);
        self.counters.reserved_seq = self.counters.reserved_seq.max(row.key.seq);
        self.order_first = self.order_first.min(row.order);
        self.order_last = self.order_last.max(row.order);
        let (state, low_priority, order) = (row.state, row.low_priority, row.order);
        let purged = self.is_purged(&row);
        let slot = self.jobs.insert(row);
        if let Some(idempotency) = &self.jobs[slot].idempotency {
            self.idempotent.insert(idempotency.key.clone(), slot);
        }
        match state {
            JobState::InQueue if purged => self.purging.insert(low_priority, order, slot),
            JobState::InQueue => self.ready.insert(low_priority, order, slot),
            JobState::InProgress => {
                self.running += 1;
                self.grant_fresh_lease(slot, now);
            }
            _ => {}
        }
        self.schedule(slot);
    }
}
