//! The workers that a queue knows: their jobs, their leases and the stops they have not confirmed.
//!
//! Volatile. After a restart every worker that a running job's row names gets a new lease; the other workers become known
//! again by their next request, or when the fleet registers them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

use longshore_model::{JobId, Millis, WorkerId};

use crate::jobs::Slot;

/// How long after its last contact an external worker without jobs is removed, in ms; after its lease if that is longer.
/// Longer than a take is parked (`TAKE_HOLD_MS_MAX`), so that a worker with a parked take stays known.
const EXTERNAL_IDLE_MS: u64 = 60_000;
const _: () = assert!(longshore_model::limits::TAKE_HOLD_MS_MAX < EXTERNAL_IDLE_MS);

/// A job that was delivered to a worker and has not been reported or requeued yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldJob {
    /// The slot of the job, which is running.
    pub(crate) slot: Slot,
    /// A ping, a progress value or a chunk confirmed the delivery.
    pub(crate) confirmed: bool,
    /// Consecutive pings that did not list the job; 0 after a confirmation.
    pub(crate) missed: u8,
    /// The worker has had no other job, running or being stopped, since it took this one.
    pub(crate) alone: bool,
}

/// A stop signal sent for `job` and not confirmed by the worker. After `by` the worker counts as stuck.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingStop {
    /// The stopped job. It may be deleted.
    pub(crate) job: JobId,
    /// The end of the stop grace.
    pub(crate) by: Millis,
    /// The stop grace is over. The next ping of the worker decides whether the worker is stuck.
    pub(crate) overdue: bool,
    /// When the worker took the job, if the worker has had no other job since then. `None`: it had, or this is not known.
    pub(crate) alone_since: Option<Millis>,
}

impl PendingStop {
    /// A stop whose grace ends at `by`, of a job that may not have been the worker's only one.
    pub(crate) fn until(job: JobId, by: Millis) -> Self {
        Self { job, by, overdue: false, alone_since: None }
    }
}

/// A worker that the queue knows: it sent a request, or was registered. The key in [`Workers`] is its id.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent of each other")]
pub(crate) struct Worker {
    /// The jobs that the worker runs.
    pub(crate) held: Vec<HeldJob>,
    /// Stops that the worker has not confirmed.
    pub(crate) stopping: Vec<PendingStop>,
    /// The time of the last contact. The lease counts from it.
    pub(crate) last_contact: Millis,
    /// When the worker became idle: at its first contact, its first take or the end of its last job. Not meaningful while
    /// it holds a job.
    pub(crate) idle_since: Millis,
    /// When the worker last sent a take; its first contact before the first one.
    pub(crate) last_take: Millis,
    /// The worker's time in [`Workers::checks`]; `Millis::MAX` if it has none.
    check_at: Millis,
    /// Our launcher runs the worker. The fleet can replace it, and reports its exit.
    pub(crate) managed: bool,
    /// The worker has sent a take. Before the first one it may still be starting.
    pub(crate) has_taken: bool,
    /// The worker has sent a ping with a job list, or ran a job before a restart. Only such a worker has a lease while it
    /// runs jobs: other workers send nothing in this time.
    pub(crate) pings: bool,
    /// The worker gets no jobs.
    pub(crate) draining: bool,
    /// The worker has had several open takes (old SDKs do). Then a take with no job in progress may cross a delivery.
    pub(crate) overlaps: bool,
    /// The number of the worker's reports that counted.
    pub(crate) jobs_done: u64,
    /// The address that its last take came from, as far as it is known.
    pub(crate) address: Option<IpAddr>,
}

impl Worker {
    /// When the lease ends without further contact. An external worker that does not ping and holds no job has a longer
    /// one; `None` for any other worker that does not ping or has sent no take.
    fn lease_ends_at(&self, lease_ms: u64) -> Option<Millis> {
        if self.pings && self.has_taken {
            Some(self.last_contact + lease_ms)
        } else if !self.managed && self.held.is_empty() {
            Some(self.removed_at(lease_ms))
        } else {
            None
        }
    }

    /// When an external worker without jobs is removed, without further contact.
    pub(crate) fn removed_at(&self, lease_ms: u64) -> Millis {
        self.last_contact + lease_ms.max(EXTERNAL_IDLE_MS)
    }

    /// Whether the worker had a lease, and it is over.
    pub(crate) fn is_lease_over(&self, now: Millis, lease_ms: u64) -> bool {
        self.lease_ends_at(lease_ms).is_some_and(|end| end <= now)
    }

    /// The earliest end of a stop grace or of the lease; `Millis::MAX` if there is none.
    fn next_check(&self, lease_ms: u64) -> Millis {
        let stop =
            self.stopping.iter().filter(|stopping| !stopping.overdue).map(|stopping| stopping.by).min();
        let lease = self.lease_ends_at(lease_ms);
        stop.into_iter().chain(lease).min().unwrap_or(Millis::MAX)
    }

    /// Removes the pending stops of the jobs that `has_stopped` returns `true` for. Returns `alone_since` of the last one
    /// that it removed; `None` if it removed none.
    pub(crate) fn confirm_stops(&mut self, has_stopped: impl Fn(JobId) -> bool) -> Option<Millis> {
        let mut alone_since = None;
        self.stopping.retain(|stopping| {
            let stopped = has_stopped(stopping.job);
            if stopped {
                alone_since = stopping.alone_since;
            }
            !stopped
        });
        alone_since
    }

    /// The job in this slot; `None` if the worker does not hold it.
    pub(crate) fn holds(&mut self, slot: Slot) -> Option<&mut HeldJob> {
        self.held.iter_mut().find(|held| held.slot == slot)
    }
}

/// Every worker that the queue knows.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    by_id: BTreeMap<WorkerId, Worker>,
    /// When to check each worker, see [`Worker::next_check`]: never later, sometimes earlier.
    checks: BTreeSet<(Millis, WorkerId)>,
    /// The number of workers that hold a job.
    busy: u32,
    /// Workers that restored rows name, until they are registered: they sent takes before the restart.
    restored: BTreeSet<WorkerId>,
    /// When a worker last sent a take; `None` before the first one.
    pub(crate) last_take: Option<Millis>,
}

impl Workers {
    /// The number of workers that hold a job.
    pub(crate) fn busy(&self) -> u32 {
        self.busy
    }

    /// Adds a job to those that the worker holds, unconfirmed.
    ///
    /// # Panics
    ///
    /// If the worker is unknown or holds the job already.
    pub(crate) fn hold(&mut self, id: &WorkerId, slot: Slot, job: JobId) {
        let worker = self.by_id.get_mut(id).expect("a worker that gets a job is known");
        assert!(worker.held.iter().all(|held| held.slot != slot), "a worker holds a job once");
        let alone = worker.held.is_empty() && worker.stopping.is_empty();
        worker.held.iter_mut().for_each(|held| held.alone = false);
        worker.stopping.iter_mut().for_each(|stopping| stopping.alone_since = None);
        // The stop was of an earlier attempt.
        worker.stopping.retain(|stopping| stopping.job != job);
        self.busy += u32::from(worker.held.is_empty());
        worker.held.push(HeldJob { slot, confirmed: false, missed: 0, alone });
    }

    /// Notes that a restored row names this worker.
    pub(crate) fn add_restored(&mut self, id: &WorkerId) {
        if !self.restored.contains(id) {
            self.restored.insert(id.clone());
        }
    }

    /// Whether a restored row names this worker. Returns `true` once.
    pub(crate) fn take_restored(&mut self, id: &WorkerId) -> bool {
        self.restored.remove(id)
    }

    /// Copies the workers of a dropped queue, without their jobs, which were restored from rows. Each gets a new lease.
    pub(crate) fn adopt(&mut self, dropped: &Self, now: Millis, lease_ms: u64) {
        self.last_take = self.last_take.max(dropped.last_take);
        for (id, before) in &dropped.by_id {
            self.touch(id, now, lease_ms);
            if let Some(worker) = self.by_id.get_mut(id) {
                worker.stopping.clone_from(&before.stopping);
                worker.managed |= before.managed;
                worker.has_taken |= before.has_taken;
                worker.pings |= before.pings;
                worker.draining |= before.draining;
                worker.overlaps |= before.overlaps;
                worker.last_take = before.last_take;
                worker.jobs_done = before.jobs_done;
            }
            self.schedule(id, lease_ms);
        }
    }

    /// The worker with this id; `None` if it is unknown.
    pub(crate) fn get(&self, id: &WorkerId) -> Option<&Worker> {
        self.by_id.get(id)
    }

    /// The worker with this id, to be changed; `None` if it is unknown.
    pub(crate) fn get_mut(&mut self, id: &WorkerId) -> Option<&mut Worker> {
        self.by_id.get_mut(id)
    }

    /// The number of known workers.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Every known worker, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&WorkerId, &Worker)> {
        self.by_id.iter()
    }

    /// Renews the lease of a worker, and adds it if it is unknown. Returns whether it was added.
    pub(crate) fn touch(&mut self, id: &WorkerId, now: Millis, lease_ms: u64) -> bool {
        if self.touch_known(id, now).is_some() {
            return false;
        }
        let worker = Worker {
            held: Vec::new(),
            stopping: Vec::new(),
            last_contact: now,
            idle_since: now,
            last_take: now,
            check_at: Millis::MAX,
            managed: false,
            has_taken: false,
            pings: false,
            draining: false,
            overlaps: false,
            jobs_done: 0,
            address: None,
        };
        self.by_id.insert(id.clone(), worker);
        self.schedule(id, lease_ms);
        true
    }

    /// Renews the lease of a known worker and returns the worker; `None` if it is unknown. For requests that must not add a
    /// worker: a report can arrive after its worker exited.
    pub(crate) fn touch_known(&mut self, id: &WorkerId, now: Millis) -> Option<&mut Worker> {
        let worker = self.by_id.get_mut(id)?;
        // The planned check stays, and finds the later end of the lease. So a ping does not reorder `checks`.
        worker.last_contact = worker.last_contact.max(now);
        Some(worker)
    }

    /// Renews every lease, and extends every stop grace to `stop_by` at least. `schedule_all` has to follow.
    pub(crate) fn renew_all(&mut self, now: Millis, stop_by: Millis) {
        for worker in self.by_id.values_mut() {
            worker.last_contact = worker.last_contact.max(now);
            for stopping in &mut worker.stopping {
                stopping.by = stopping.by.max(stop_by);
            }
        }
    }

    /// Plans the next check of every worker; call it after the lease or the times of all workers changed.
    pub(crate) fn schedule_all(&mut self, lease_ms: u64) {
        let ids: Vec<WorkerId> = self.by_id.keys().cloned().collect();
        for id in ids {
            self.schedule(&id, lease_ms);
        }
    }

    /// Plans the next check of a worker; call it after a change that may require an earlier check. A planned check that is
    /// too early stays: it does nothing but plan the next one. So few takes and reports change `checks`.
    pub(crate) fn schedule(&mut self, id: &WorkerId, lease_ms: u64) {
        let Some(worker) = self.by_id.get_mut(id) else { return };
        let at = worker.next_check(lease_ms);
        if at < worker.check_at {
            self.checks.remove(&(worker.check_at, id.clone()));
            self.checks.insert((at, id.clone()));
            worker.check_at = at;
        }
    }

    /// The time of the next check; `None` if none is planned.
    pub(crate) fn next_check(&self) -> Option<Millis> {
        self.checks.first().map(|(at, _)| *at)
    }

    /// Removes the first check that is due and returns its worker; `None` if none is due. `schedule` plans the next one.
    pub(crate) fn pop_due(&mut self, now: Millis) -> Option<WorkerId> {
        let (at, id) = self.checks.first()?;
        if *at > now {
            return None;
        }
        let id = id.clone();
        self.checks.pop_first();
        if let Some(worker) = self.by_id.get_mut(&id) {
            worker.check_at = Millis::MAX;
        }
        Some(id)
    }

    /// Removes a worker, if it is known.
    ///
    /// # Panics
    ///
    /// If the worker holds a job.
    pub(crate) fn remove(&mut self, id: &WorkerId) {
        if let Some(worker) = self.by_id.remove(id) {
            assert!(worker.held.is_empty(), "a removed worker holds no job");
            self.checks.remove(&(worker.check_at, id.clone()));
        }
    }

    /// Removes a job from those that the worker holds; nothing if the worker is unknown or does not hold it.
    pub(crate) fn release(&mut self, id: &WorkerId, slot: Slot, now: Millis, lease_ms: u64) {
        let Some(worker) = self.by_id.get_mut(id) else { return };
        let Some(at) = worker.held.iter().position(|held| held.slot == slot) else { return };
        worker.held.remove(at);
        if worker.held.is_empty() {
            worker.idle_since = now;
            assert!(self.busy > 0, "a worker that held a job was counted");
            self.busy -= 1;
            if worker.next_check(lease_ms) < worker.check_at {
                self.schedule(id, lease_ms);
            }
        }
    }

    /// Asserts that every worker is checked in time, and that every check is of a known worker.
    #[cfg(test)]
    pub(crate) fn assert_checks(&self, lease_ms: u64) {
        let planned = |worker: &Worker| worker.check_at < Millis::MAX;
        for (id, worker) in &self.by_id {
            assert!(worker.check_at <= worker.next_check(lease_ms), "{id} is checked too late: {worker:?}");
            let listed = self.checks.contains(&(worker.check_at, id.clone()));
            assert_eq!(listed, planned(worker), "{id} is listed as planned: {worker:?}");
        }
        let planned = self.by_id.values().filter(|worker| planned(worker)).count();
        assert_eq!(self.checks.len(), planned, "no stray check");
    }
}
