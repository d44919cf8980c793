//! A worker asks for jobs.

use alloc::vec::Vec;

use longshore_model::{JobRow, Millis, WorkerId, limits};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::queue::SLICE_JOBS_MAX;
use crate::workers::{HeldJob, Worker};
use crate::{Effects, Queue, Signal};

/// A worker's request for jobs.
#[derive(Clone, Debug)]
pub struct Take {
    /// The worker that gets the jobs.
    pub worker: WorkerId,
    /// How many jobs it has room for; at least 1.
    pub slots: u32,
    /// What it says of jobs in progress; none where it does not say.
    pub says_busy: Option<bool>,
    /// Another take of the same worker is open. Then "nothing in progress" may cross a delivery in flight.
    pub overlapping: bool,
    /// The most bytes that the inputs of the delivered jobs may have together.
    pub input_bytes_max: u64,
}

impl Queue {
    /// Hands the worker the jobs that are next, at most `take.slots`, each in a new attempt. Empty if there is none for it.
    pub fn take(&mut self, now: Millis, take: &Take, out: &mut Effects) -> Vec<JobRow> {
        self.touch_or_register(now, &take.worker, out);
        let Some(worker) = self.workers.get_mut(&take.worker) else { return Vec::new() };
        worker.overlaps |= take.overlapping;
        // Nobody replaces a worker from outside: one that asks again although it was to be goes on.
        worker.draining &= worker.managed;
        let draining = worker.draining;
        let says_idle = take.says_busy == Some(false);
        let alone_since = if says_idle { worker.lets_go(|_| true) } else { None };
        let dropped = if says_idle { empty_handed(worker) } else { Vec::new() };
        if !core::mem::replace(&mut worker.asked, true) {
            // The first question of a worker ends its start.
            worker.idle_since = now;
            self.workers.schedule(&take.worker, self.settings.lease_ms);
            out.signals.push(Signal::LoadChanged);
        }
        out.let_go(now, &take.worker, alone_since);
        self.redeliver(dropped, now, out);
        if (draining && !planted(Bug::DrainedWorkerTakes)) || self.settings.paused {
            return Vec::new();
        }
        self.hand_out(now, take, out)
    }

    fn hand_out(&mut self, now: Millis, take: &Take, out: &mut Effects) -> Vec<JobRow> {
        let mut taken = Vec::new();
        let slots = take.slots.clamp(1, limits::TAKE_SLOTS_MAX) as usize;
        let (mut expired, mut bytes) = (0, 0);
        while taken.len() < slots {
            let Some(slot) = self.ready.first() else { break };
            if now < self.jobs[slot].delete_at() {
                bytes += u64::from(self.jobs[slot].input_bytes());
                let goes_alone = self.goes_alone(slot);
                if bytes > take.input_bytes_max || (goes_alone && !taken.is_empty()) {
                    break;
                }
                self.start(slot, &take.worker, now, out);
                taken.push(self.jobs.row(slot));
                if goes_alone {
                    break;
                }
            } else if expired < SLICE_JOBS_MAX {
                expired += 1;
                self.remove(slot, now, out);
            } else {
                // There may be a good job behind them all: ask again rather than wait for a new one.
                out.signals.push(Signal::JobReady);
                break;
            }
        }
        if !taken.is_empty() {
            out.signals.push(Signal::LoadChanged);
        }
        taken
    }
}

impl Queue {
    /// Whether the job is in no answer together with others: a worker dropped it before, and gave no sign that it had it.
    /// A job that a worker cannot read costs it the whole answer, and which one it was nobody knows.
    fn goes_alone(&self, slot: Slot) -> bool {
        self.jobs[slot].redeliveries() > 0 && !planted(Bug::DroppedInBatches)
    }
}

/// A worker that asks with nothing in progress does not have what we think it has: the answer to an earlier take was
/// lost, or it dropped a job without a word.
fn empty_handed(worker: &Worker) -> Vec<HeldJob> {
    // With several takes open, the answer to another may be on its way.
    if worker.overlaps { Vec::new() } else { worker.held.clone() }
}
