//! The verb ping: a worker renews its lease and lists its jobs.
//!
//! The list is a hint. SDKs send old lists when they retry, and list jobs of other workers from files that they share. So
//! only jobs that were delivered to this worker count, and a job is dropped only if two consecutive pings do not list it
//! (worker protocol §5).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use longshore_model::{AttemptEnd, JobId, JobState, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::transitions::RequeueCause;
use crate::workers::{HeldJob, PendingStop};
use crate::{Effects, Queue, Signal};

/// Consecutive pings that do not list a job after which the worker counts as not having it.
const MISSED_PINGS_MAX: u8 = 2;
/// Unconfirmed deliveries of a job before further ones count as retries, so that a job that never arrives fails in the
/// end.
const REDELIVERIES_MAX: u8 = 3;
/// The reason of a requeue after a confirmed delivery.
const DROPPED: &str = "the worker dropped the job without a report";

impl Queue {
    /// Renews the worker's lease and compares its job list `holds` with the jobs delivered to it. An unknown worker becomes
    /// known. `None`: the ping has no list, and only renews the lease.
    ///
    /// A listed job is confirmed. A job missing in two consecutive lists is requeued. A stopped job that is not listed
    /// counts as stopped; one that is listed after its stop grace makes the worker stuck. A listed job that is terminal or
    /// unknown gets another stop signal.
    pub fn ping(&mut self, now: Millis, id: &WorkerId, holds: Option<&[JobId]>, out: &mut Effects) {
        self.touch_or_register(now, id, out);
        let Some(listed) = holds else { return };
        let listed: BTreeSet<JobId> = listed.iter().copied().collect();
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.pings = true;
        let alone_since = worker.confirm_stops(|job| !listed.contains(&job));
        let stuck = worker.stopping.iter().find(|stopping| stopping.overdue).map(|stopping| stopping.job);
        let mut dropped = Vec::new();
        for held in &mut worker.held {
            if listed.contains(&self.jobs[held.slot].id) {
                (held.confirmed, held.missed) = (true, 0);
            } else {
                held.missed += 1;
                if held.missed >= MISSED_PINGS_MAX {
                    dropped.push(*held);
                }
            }
        }
        out.stop_confirmed(now, id, alone_since);
        self.redeliver(dropped, now, out);
        if let Some(job) = stuck {
            self.replace_stuck(id, job, out);
        }
        self.stop_finished(now, id, &listed, out);
        self.workers.schedule(id, self.settings.lease_ms);
    }

    /// Renews the lease of a worker, and adds an unknown one.
    pub(crate) fn touch_or_register(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        if self.workers.touch(id, now, self.settings.lease_ms) {
            out.signals.push(Signal::LoadChanged);
        }
    }

    /// Renews the lease of a worker after a request without job information. An unknown worker stays unknown.
    pub fn touch_worker(&mut self, now: Millis, id: &WorkerId) {
        self.workers.touch_known(id, now);
    }

    /// Requeues jobs that their worker does not have. A requeue counts as a retry if the delivery was confirmed, or after
    /// [`REDELIVERIES_MAX`] unconfirmed deliveries of the job.
    pub(crate) fn redeliver(&mut self, mut dropped: Vec<HeldJob>, now: Millis, out: &mut Effects) {
        self.sort_last_first(&mut dropped);
        for held in dropped {
            let row = &mut self.jobs[held.slot];
            let counts =
                held.confirmed || row.redeliveries() >= REDELIVERIES_MAX || planted(Bug::LostAnswerCounted);
            if !counts {
                row.extras_mut().redeliveries += 1;
            }
            let cause = if held.confirmed {
                RequeueCause::AttemptEnded(AttemptEnd::WorkerLost, DROPPED)
            } else {
                RequeueCause::Unconfirmed
            };
            self.requeue(held.slot, counts, &cause, now, out);
        }
    }

    /// Sorts running jobs by descending position, so that requeuing each at the front restores their order.
    pub(crate) fn sort_last_first(&self, held: &mut [HeldJob]) {
        // A running job's row keeps the position that the job had in the queue.
        held.sort_by_key(|held| core::cmp::Reverse(self.jobs[held.slot].order));
    }

    /// Repeats the stop signal for listed jobs that are terminal or unknown, because a signal may be lost. Adds a pending
    /// stop for jobs that this worker ran and that were cancelled or timed out: a restart loses pending stops.
    fn stop_finished(&mut self, now: Millis, id: &WorkerId, listed: &BTreeSet<JobId>, out: &mut Effects) {
        for job in listed {
            let slot = self.jobs.find(*job);
            if slot.is_none_or(|slot| self.jobs[slot].state().is_terminal()) {
                out.signals.push(Signal::StopJob(id.clone(), *job));
            }
            let Some(worker) = self.workers.get_mut(id) else { return };
            let is_pending = worker.stopping.iter().any(|stopping| stopping.job == *job);
            if !is_pending && slot.is_some_and(|slot| was_stopped(&self.jobs[slot], id)) {
                // The list may be old. The grace is a whole lease, in which several newer lists arrive.
                worker.stopping.push(PendingStop::until(*job, now + self.settings.lease_ms));
            }
        }
    }
}

/// Whether the job was cancelled or timed out while this worker, the last one, had it.
fn was_stopped(row: &crate::packed::PackedRow, by: &WorkerId) -> bool {
    matches!(row.state(), JobState::Cancelled | JobState::TimedOut) && row.worker() == Some(by)
}
