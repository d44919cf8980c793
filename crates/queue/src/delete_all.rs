//! The endpoint is deleted: its jobs go in slices.

use longshore_model::Millis;

use crate::queue::SLICE_JOBS_MAX;
use crate::{Effects, Queue};

impl Queue {
    /// Removes a slice of the jobs, in any state, and returns how many are left. Repeat it until none is.
    pub fn delete_slice(&mut self, now: Millis, out: &mut Effects) -> u64 {
        for slot in self.jobs.some(SLICE_JOBS_MAX) {
            self.stop_holder(slot, now, out);
            self.remove(slot, now, out);
        }
        self.jobs.len()
    }
}
