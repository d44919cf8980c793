//! A client wants every queued job to be cancelled.
//!
//! The purge takes effect at once and costs one small write: a time up to which queued jobs are purged. The
//! jobs' own rows follow in slices.

use longshore_model::{JobState, Millis};

use crate::packed::PackedRow;
use crate::queue::SLICE_JOBS_MAX;
use crate::{Effects, Queue, Signal};

impl Queue {
    /// Cancels every queued job, and returns how many there were. Clients see them as cancelled from now on.
    pub fn purge(&mut self, now: Millis, out: &mut Effects) -> u64 {
        let removed = self.queued();
        if removed > 0 {
            // Jobs that came after an earlier purge within the same millisecond carry later times than now.
            self.counters.purged_until = now.max(self.enqueued_last);
            self.purging.append(&mut self.ready);
            self.aside.append_to(&mut self.purging);
            out.signals.push(Signal::LoadChanged);
        }
        removed
    }

    /// Whether a purge has cancelled the job although its row does not say so yet.
    pub(crate) fn is_purged(&self, row: &PackedRow) -> bool {
        row.state() == JobState::InQueue && row.enqueued_at() <= self.counters.purged_until
    }

    /// Writes a slice of purged jobs as cancelled. Answers how many.
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
