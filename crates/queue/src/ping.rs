//! A worker shows that it lives, and what it holds.
//!
//! A ping is a hint: SDKs repeat old lists when they retry, and list foreign ids from files they share. Only
//! jobs that this worker was given count, and only twice in a row (worker protocol §5).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use longshore_model::{JobId, JobState, Millis, WorkerId};
use longshore_planted::{Bug, planted};

use crate::transitions::Loss;
use crate::workers::{HeldJob, PendingStop};
use crate::{Effects, Queue, Signal};

/// Pings in a row that do not list a job before it counts as dropped.
const MISSED_PINGS_MAX: u8 = 2;
/// Deliveries that nobody confirmed before further ones count as retries: a job that kills its worker's answer
/// every time must not go round for ever.
const REDELIVERIES_MAX: u8 = 3;
/// What a worker did that had the job for sure.
const DROPPED: &str = "its worker dropped it without reporting a result";

impl Queue {
    /// Renews the worker's lease, and compares the jobs that it `holds` with those that it was given (`None`: it does not
    /// say). An unknown worker becomes a known one.
    pub fn ping(&mut self, now: Millis, id: &WorkerId, holds: Option<&[JobId]>, out: &mut Effects) {
        self.touch_or_register(now, id, out);
        let Some(listed) = holds else { return };
        let listed: BTreeSet<JobId> = listed.iter().copied().collect();
        let Some(worker) = self.workers.get_mut(id) else { return };
        worker.pings = true;
        let alone_since = worker.lets_go(|job| !listed.contains(&job));
        let clings = worker.stopping.iter().find(|stopping| stopping.overdue).map(|stopping| stopping.job);
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
        out.let_go(now, id, alone_since);
        self.redeliver(dropped, now, out);
        if let Some(job) = clings {
            self.replace_stuck(id, job, out);
        }
        self.stop_finished(now, id, &listed, out);
        self.workers.schedule(id, self.settings.lease_ms);
    }

    /// Any request of a worker is a sign of life. Unknown workers are welcome.
    pub(crate) fn touch_or_register(&mut self, now: Millis, id: &WorkerId, out: &mut Effects) {
        if self.workers.touch(id, now, self.settings.lease_ms) {
            out.signals.push(Signal::LoadChanged);
        }
    }

    /// Renews the lease of a worker whose request says nothing of jobs. An unknown worker stays unknown.
    pub fn touch_worker(&mut self, now: Millis, id: &WorkerId) {
        self.workers.touch_known(id, now);
    }

    /// Back to the front of the line with jobs that their worker does not have. It counts as a retry if the
    /// worker had the job for sure, or if the job never arrives anywhere.
    pub(crate) fn redeliver(&mut self, mut dropped: Vec<HeldJob>, now: Millis, out: &mut Effects) {
        self.sort_last_first(&mut dropped);
        for held in dropped {
            let row = &mut self.jobs[held.slot];
            let counts =
                held.confirmed || row.redeliveries() >= REDELIVERIES_MAX || planted(Bug::LostAnswerCounted);
            if !counts {
                row.extras_mut().redeliveries += 1;
            }
            let loss = if held.confirmed { Loss::Worker(DROPPED) } else { Loss::Delivery };
            self.requeue(held.slot, counts, &loss, now, out);
        }
    }

    /// Sorts jobs so that putting each at the front of the line brings all of them into their old order.
    pub(crate) fn sort_last_first(&self, held: &mut [HeldJob]) {
        // A running job's row still says where in the line it was.
        held.sort_by_key(|held| core::cmp::Reverse(self.jobs[held.slot].order));
    }

    /// Repeats the stop signal for listed jobs that are over: it may have been lost, with a restart even the
    /// memory of having sent it.
    fn stop_finished(&mut self, now: Millis, id: &WorkerId, listed: &BTreeSet<JobId>, out: &mut Effects) {
        for job in listed {
            let slot = self.jobs.find(*job);
            if slot.is_none_or(|slot| self.jobs[slot].state().is_terminal()) {
                out.signals.push(Signal::StopJob(id.clone(), *job));
            }
            let Some(worker) = self.workers.get_mut(id) else { return };
            let knows = worker.stopping.iter().any(|stopping| stopping.job == *job);
            if !knows && slot.is_some_and(|slot| was_stopped(&self.jobs[slot], id)) {
                // The list may be an old one: a whole lease, so that several new ones can correct it.
                worker.stopping.push(PendingStop::until(*job, now + self.settings.lease_ms));
            }
        }
    }
}

fn was_stopped(row: &crate::packed::PackedRow, by: &WorkerId) -> bool {
    matches!(row.state(), JobState::Cancelled | JobState::TimedOut) && row.worker() == Some(by)
}
