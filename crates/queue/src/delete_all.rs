//! The verb delete-slice: the endpoint is deleted, and its jobs are deleted in slices.

use longshore_model::Millis;

use crate::queue::SLICE_JOBS_MAX;
use crate::{Effects, Queue};

impl Queue {
    /// Deletes a slice of the jobs, in any state, and returns the number of jobs left. To be repeated until it is 0. Workers
    /// of running jobs get stop signals.
    pub fn delete_slice(&mut self, now: Millis, out: &mut Effects) -> u64 {
        for slot in self.jobs.first(SLICE_JOBS_MAX) {
            self.stop_holder(slot, now, out);
            self.remove(slot, now, out);
        }
        self.jobs.len()
    }
}
