//! The verb take: a worker requests jobs.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

use longshore_model::{JobRow, Millis, WorkerId, limits};
use longshore_planted::{Bug, planted};

use crate::jobs::Slot;
use crate::queue::SLICE_JOBS_MAX;
use crate::workers::{HeldJob, Worker};
use crate::{Effects, Queue, Signal};

/// A worker's request for jobs (`job-take`).
#[derive(Clone, Debug)]
pub struct Take {
    /// The worker that gets the jobs.
    pub worker: WorkerId,
    /// The number of jobs the worker has room for; limited to 1 to [`limits::TAKE_SLOTS_MAX`].
    pub slots: u32,
    /// Whether the worker has jobs in progress (`job_in_progress`); `None` if the request does not say.
    pub says_busy: Option<bool>,
    /// Another take of the same worker is open. `Some(false)` in `says_busy` may then cross a delivery in flight.
    pub overlapping: bool,
    /// The address that the take came from; `None` if it is not known, or the same as before.
    pub address: Option<IpAddr>,
    /// The type of the worker's first GPU, for the rows of the jobs; `None` if it has none.
    pub gpu: Option<Arc<str>>,
    /// Limit of the sum of the inputs of the delivered jobs, in bytes.
    pub input_bytes_max: u64,
}

impl Queue {
    /// Delivers the next ready jobs to the worker, at most `take.slots`, each in a new attempt. Returns their rows in the
    /// order of the queue; empty if no job is ready, the worker is draining or the endpoint is paused.
    ///
    /// Renews the lease of the worker; an unknown worker becomes known. If the worker says that it has no job in progress,
    /// it confirms all stops, and the jobs that it holds are redelivered.
    pub fn take(&mut self, now: Millis, take: &Take, out: &mut Effects) -> Vec<JobRow> {
        self.touch_or_register(now, &take.worker, out);
        self.workers.last_take = Some(now);
        let Some(worker) = self.workers.get_mut(&take.worker) else { return Vec::new() };
        worker.overlaps |= take.overlapping;
        worker.last_take = now;
        if take.address.is_some() {
            worker.address = take.address;
        }
        // An external worker cannot be replaced. If it sends another take after its lease ended, it gets jobs again.
        worker.draining &= worker.managed;
        let draining = worker.draining;
        let says_idle = take.says_busy == Some(false);
        let alone_since = if says_idle { worker.confirm_stops(|_| true) } else { None };
        let lost = if says_idle { lost_deliveries(worker) } else { Vec::new() };
        if !core::mem::replace(&mut worker.has_taken, true) {
            // The first take ends the start of the worker.
            worker.idle_since = now;
            self.workers.schedule(&take.worker, self.settings.lease_ms);
            out.signals.push(Signal::LoadChanged);
        }
        out.stop_confirmed(now, &take.worker, alone_since);
        self.redeliver(lost, now, out);
        if (draining && !planted(Bug::DrainedWorkerTakes)) || self.settings.paused {
            return Vec::new();
        }
        self.deliver(now, take, out)
    }

    /// Delivers jobs within the limits of the take. Deletes the expired jobs before them, at most a slice.
    fn deliver(&mut self, now: Millis, take: &Take, out: &mut Effects) -> Vec<JobRow> {
        let mut taken = Vec::new();
        let slots = take.slots.clamp(1, limits::TAKE_SLOTS_MAX) as usize;
        let (mut expired, mut bytes) = (0, 0);
        while taken.len() < slots {
            let Some(slot) = self.ready.first() else { break };
            if now < self.jobs[slot].delete_at() {
                bytes += u64::from(self.jobs[slot].input_bytes());
                let alone = self.is_delivered_alone(slot);
                if bytes > take.input_bytes_max || (alone && !taken.is_empty()) {
                    break;
                }
                self.start(slot, &take.worker, take.gpu.as_ref(), now, out);
                taken.push(self.jobs.row(slot));
                if alone {
                    break;
                }
            } else if expired < SLICE_JOBS_MAX {
                expired += 1;
                self.remove(slot, now, out);
            } else {
                // A job behind the expired ones may be deliverable, so the take is to be tried again.
                out.signals.push(Signal::JobReady);
                break;
            }
        }
        if !taken.is_empty() {
            out.signals.push(Signal::LoadChanged);
        }
        taken
    }

    /// Whether the job may not share a take reply with other jobs: an earlier delivery of it was not confirmed. A job that
    /// a worker cannot read makes the worker drop the whole reply, which does not show the job that caused it.
    fn is_delivered_alone(&self, slot: Slot) -> bool {
        self.jobs[slot].redeliveries() > 0 && !planted(Bug::DroppedInBatches)
    }
}

/// The held jobs of a worker that says it has none in progress: an earlier take reply was lost, or the worker dropped the
/// jobs without a report. None if the worker has several open takes: the reply to another one may be in flight.
fn lost_deliveries(worker: &Worker) -> Vec<HeldJob> {
    if worker.overlaps { Vec::new() } else { worker.held.clone() }
}
