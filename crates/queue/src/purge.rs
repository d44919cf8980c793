//! The verb purge: a client cancels all queued jobs.
//!
//! A purge takes effect immediately and writes one row: the counters, with a time up to which queued jobs are purged. The
//! rows of the jobs are written by later ticks, in slices.

use longshore_model::{JobState, Millis};

use crate::packed::PackedRow;
use crate::queue::SLICE_JOBS_MAX;
use crate::{Effects, Queue, Signal};

impl Queue {
    /// Cancels all queued jobs and returns their number. Clients see them as cancelled as soon as the counters are durable.
    pub fn purge(&mut self, now: Millis, out: &mut Effects) -> u64 {
        let removed = self.queued();
        if removed > 0 {
            // Jobs that were submitted after another purge in the same millisecond have a later time than now.
            self.counters.purged_until = now.max(self.enqueued_last);
            self.purging.append(&mut self.ready);
            self.deferred.append_to(&mut self.purging);
            out.signals.push(Signal::LoadChanged);
        }
        removed
    }

    /// Whether a purge cancelled the job and its row is still stored as queued.
    pub(crate) fn is_purged(&self, row: &PackedRow) -> bool {
        row.state() == JobState::InQueue && row.enqueued_at() <= self.counters.purged_until
    }

    /// Ends a slice of the purged jobs as cancelled. Returns their number, at most [`SLICE_JOBS_MAX`].
    pub(crate) fn cancel_purged(&mut self, now: Millis, out: &mut Effects) -> usize {
        let mut done = 0;
        while done < SLICE_JOBS_MAX {
            let Some(slot) = self.purging.first() else { break };
            let at = self.counters.purged_until.min(now);
            self.end(slot, JobState::Cancelled, at, out);
            done += 1;
        }
        done
    }
}
