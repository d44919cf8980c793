//! The endpoint is deleted: its jobs go in slices.

use longshore_model::Millis;

use crate::queue::SLICE_JOBS_MAX;
use crate::{Effects, Queue, Reply};

impl Queue {
    pub(crate) fn delete_slice(&mut self, now: Millis, out: &mut Effects) -> Reply {
        for slot in self.jobs.some(SLICE_JOBS_MAX) {
            self.stop_holder(slot, now, out);
            self.remove(slot, now, out);
        }
        Reply::Left(self.jobs.len())
    }
}
