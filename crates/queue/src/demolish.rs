//! The endpoint is deleted: its jobs go in slices.

use longshore_model::Millis;

use crate::queue::{Outbox, SLICE};
use crate::{Queue, Reply};

impl Queue {
    pub(crate) fn demolish(&mut self, out: &mut Outbox) -> Reply {
        for slot in self.jobs.some(SLICE) {
            self.stop_holder(slot, Millis(0), out);
            self.remove(slot, Millis(0), out);
        }
        Reply::Left(self.jobs.len())
    }
}
