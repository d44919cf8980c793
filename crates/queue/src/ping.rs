//! A worker shows that it lives, and what it holds.
//!
//! A ping is a hint: SDKs repeat old lists when they retry, and list foreign ids from files they share. Only
//! jobs that this worker was given count, and only twice in a row (worker protocol §5).

use longshore_model::{JobId, JobState, Millis, WorkerId};

use crate::queue::Outbox;
use crate::workers::Held;
use crate::{Queue, Reply, Signal};

/// Pings in a row that do not list a job before it counts as dropped.
const MISSED_PINGS_MAX: u8 = 2;
/// Deliveries that nobody confirmed before further ones count as retries: a job that kills its worker's answer
/// every time must not go round for ever.
const REDELIVERIES_MAX: u8 = 3;

impl Queue {
    pub(crate) fn ping(
        &mut self,
        now: Millis,
        id: &WorkerId,
        holds: Option<&[JobId]>,
        out: &mut Outbox,
    ) -> Reply {
        self.greet(now, id, out);
        let Some(listed) = holds else { return Reply::Done };
        let Some(worker) = self.workers.get_mut(id) else { return Reply::Done };
        worker.pings = true;
        worker.stopping.retain(|(job, _)| listed.contains(job));
        let mut dropped = alloc::vec::Vec::new();
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
        self.workers.schedule(id, self.settings.lease_ms);
        for held in dropped.into_iter().rev() {
            self.redeliver(held, now, out);
        }
        self.stop_finished(id, listed, out);
        Reply::Done
    }

    /// Any request of a worker is a sign of life.
    pub(crate) fn greet(&mut self, now: Millis, id: &WorkerId, out: &mut Outbox) {
        if self.workers.seen(id, now, self.settings.lease_ms) {
            out.signals.push(Signal::Demand);
        }
    }

    /// Back to the front of the line with a job that the worker does not have. It counts as a retry if the
    /// worker had it for sure, or if it never arrives anywhere.
    pub(crate) fn redeliver(&mut self, held: Held, now: Millis, out: &mut Outbox) {
        let row = &mut self.jobs[held.slot];
        let counts = held.confirmed || row.redeliveries >= REDELIVERIES_MAX;
        if !counts {
            row.redeliveries += 1;
        }
        self.put_back(held.slot, counts, "its worker dropped it without reporting a result", now, out);
    }

    /// Repeats the stop signal for listed jobs that are over: it may have been lost.
    fn stop_finished(&mut self, id: &WorkerId, listed: &[JobId], out: &mut Outbox) {
        for job in listed {
            let over = match self.jobs.find(*job) {
                None => true,
                Some(slot) => self.jobs[slot].state.is_terminal(),
            };
            if over {
                out.signals.push(Signal::Stop(id.clone(), *job));
            }
        }
    }

    /// A launcher runs this worker.
    pub(crate) fn introduce(&mut self, now: Millis, id: &WorkerId, out: &mut Outbox) -> Reply {
        self.greet(now, id, out);
        if let Some(worker) = self.workers.get_mut(id) {
            worker.managed = true;
            self.workers.schedule(id, self.settings.lease_ms);
        }
        Reply::Done
    }

    /// The worker gets no more jobs.
    pub(crate) fn drain(&mut self, id: &WorkerId, out: &mut Outbox) -> Reply {
        if let Some(worker) = self.workers.get_mut(id) {
            worker.draining = true;
            out.signals.push(Signal::Demand);
        }
        Reply::Done
    }

    /// Restores the running job's place in its worker's hands after a load.
    pub(crate) fn grant_fresh_lease(&mut self, slot: crate::jobs::Slot, now: Millis) {
        let row = &self.jobs[slot];
        let (JobState::InProgress, Some(id)) = (row.state, row.worker.clone()) else { return };
        self.workers.seen(&id, now, self.settings.lease_ms);
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.asked = true;
            // Nobody knows yet whether it pings; if it is silent now, it is gone.
            worker.pings = true;
        }
        self.workers.hold(&id, slot);
        self.workers.schedule(&id, self.settings.lease_ms);
    }
}
