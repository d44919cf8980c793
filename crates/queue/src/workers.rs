//! The workers as this queue knows them. All of it is volatile: a restart grants every running job one fresh
//! lease, and the workers show themselves again.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use longshore_model::{JobId, Millis, WorkerId};

use crate::jobs::Slot;

/// A silent worker from outside is forgotten after this, when it holds nothing: longer than any poll is held.
const SILENT_IDLE_MS: u64 = 60_000;

/// A job in a worker's hands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldJob {
    pub(crate) slot: Slot,
    /// The worker has shown that the job arrived: by a ping, a progress value or a chunk.
    pub(crate) confirmed: bool,
    /// Pings in a row that did not list it.
    pub(crate) missed: u8,
    /// The worker has had no other job since it got this one.
    pub(crate) alone: bool,
}

/// A job that its worker was told to stop, and has not let go of as far as we know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingStop {
    pub(crate) job: JobId,
    /// Until when it may take to let go.
    pub(crate) by: Millis,
    /// That time passed, but its last word on the matter is older: its next ping decides.
    pub(crate) overdue: bool,
    /// Since when it was the only job of its worker. None: it was not, or nobody knows.
    pub(crate) alone_since: Option<Millis>,
}

impl PendingStop {
    pub(crate) fn until(job: JobId, by: Millis) -> Self {
        Self { job, by, overdue: false, alone_since: None }
    }
}

/// One worker.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that hold or not, each by itself")]
pub(crate) struct Worker {
    pub(crate) held: Vec<HeldJob>,
    /// Jobs it was told to stop.
    pub(crate) stopping: Vec<PendingStop>,
    /// Last sign of life.
    pub(crate) seen_at: Millis,
    /// Since when it holds nothing.
    pub(crate) idle_since: Millis,
    /// Its entry in the check list.
    check_at: Millis,
    /// A launcher of ours runs it: we can replace it, and hear when it exits.
    pub(crate) managed: bool,
    /// It has asked for a job.
    pub(crate) asked: bool,
    /// It pings, so silence means something while it runs a job.
    pub(crate) pings: bool,
    /// It gets no more jobs.
    pub(crate) draining: bool,
    /// It keeps several takes open at once (old SDKs do); "nothing in progress" then proves nothing.
    pub(crate) overlaps: bool,
}

impl Worker {
    /// When silence has lasted too long; none while silence means nothing.
    fn lease_ends_at(&self, lease_ms: u64) -> Option<Millis> {
        if self.pings && self.asked {
            Some(self.seen_at + lease_ms)
        } else if !self.managed && self.held.is_empty() {
            Some(self.forgotten_at(lease_ms))
        } else {
            None
        }
    }

    /// When a worker from outside that holds nothing is forgotten, if it stays silent.
    pub(crate) fn forgotten_at(&self, lease_ms: u64) -> Millis {
        self.seen_at + lease_ms.max(SILENT_IDLE_MS)
    }

    pub(crate) fn is_silent(&self, now: Millis, lease_ms: u64) -> bool {
        self.lease_ends_at(lease_ms).is_some_and(|end| end <= now)
    }

    fn next_check(&self, lease_ms: u64) -> Millis {
        let stop =
            self.stopping.iter().filter(|stopping| !stopping.overdue).map(|stopping| stopping.by).min();
        let lease = self.lease_ends_at(lease_ms);
        stop.into_iter().chain(lease).min().unwrap_or(Millis::MAX)
    }

    /// Takes those jobs off the list of what it is to stop that `has_let_go` names. Answers since when the last of them was
    /// its only job, if it was.
    pub(crate) fn lets_go(&mut self, has_let_go: impl Fn(JobId) -> bool) -> Option<Millis> {
        let mut alone_since = None;
        self.stopping.retain(|stopping| {
            let gone = has_let_go(stopping.job);
            if gone {
                alone_since = stopping.alone_since;
            }
            !gone
        });
        alone_since
    }

    pub(crate) fn holds(&mut self, slot: Slot) -> Option<&mut HeldJob> {
        self.held.iter_mut().find(|held| held.slot == slot)
    }
}

/// Every worker that has shown itself or was introduced.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    by_id: BTreeMap<WorkerId, Worker>,
    /// When to look at a worker next: never later than needed, sometimes earlier.
    checks: BTreeSet<(Millis, WorkerId)>,
    /// How many hold a job.
    busy: u32,
    /// Those that rows name: they asked for jobs before a restart.
    earlier: BTreeSet<WorkerId>,
}

impl Workers {
    /// How many workers hold a job.
    pub(crate) fn busy(&self) -> u32 {
        self.busy
    }

    /// Puts a job into a worker's hands.
    pub(crate) fn hold(&mut self, id: &WorkerId, slot: Slot, job: JobId) {
        let worker = self.by_id.get_mut(id).expect("a worker that gets a job is known");
        assert!(worker.held.iter().all(|held| held.slot != slot), "a worker gets a job once at a time");
        let alone = worker.held.is_empty() && worker.stopping.is_empty();
        worker.held.iter_mut().for_each(|held| held.alone = false);
        worker.stopping.iter_mut().for_each(|stopping| stopping.alone_since = None);
        // A stop of an earlier run must not be held against this one.
        worker.stopping.retain(|stopping| stopping.job != job);
        self.busy += u32::from(worker.held.is_empty());
        worker.held.push(HeldJob { slot, confirmed: false, missed: 0, alone });
    }

    /// A stored job was with this worker.
    pub(crate) fn remember(&mut self, id: &WorkerId) {
        if !self.earlier.contains(id) {
            self.earlier.insert(id.clone());
        }
    }

    /// Whether the worker had a job before a restart, asked once.
    pub(crate) fn recall(&mut self, id: &WorkerId) -> bool {
        self.earlier.remove(id)
    }

    /// Takes over what was known of the workers, but for their jobs: those are in the rows.
    pub(crate) fn take_over(&mut self, earlier: &Self, now: Millis, lease_ms: u64) {
        for (id, before) in &earlier.by_id {
            self.touch(id, now, lease_ms);
            if let Some(worker) = self.by_id.get_mut(id) {
                worker.stopping.clone_from(&before.stopping);
                worker.managed |= before.managed;
                worker.asked |= before.asked;
                worker.pings |= before.pings;
                worker.draining |= before.draining;
                worker.overlaps |= before.overlaps;
            }
            self.schedule(id, lease_ms);
        }
    }

    pub(crate) fn get(&self, id: &WorkerId) -> Option<&Worker> {
        self.by_id.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &WorkerId) -> Option<&mut Worker> {
        self.by_id.get_mut(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&WorkerId, &Worker)> {
        self.by_id.iter()
    }

    /// The worker gave a sign of life; unknown ones are welcomed. Answers whether it is new.
    pub(crate) fn touch(&mut self, id: &WorkerId, now: Millis, lease_ms: u64) -> bool {
        if self.touch_known(id, now).is_some() {
            return false;
        }
        let worker = Worker {
            held: Vec::new(),
            stopping: Vec::new(),
            seen_at: now,
            idle_since: now,
            check_at: Millis::MAX,
            managed: false,
            asked: false,
            pings: false,
            draining: false,
            overlaps: false,
        };
        self.by_id.insert(id.clone(), worker);
        self.schedule(id, lease_ms);
        true
    }

    /// A sign of life that makes no worker: a report may come in after its sender is gone for good. Answers
    /// the worker if it is known.
    pub(crate) fn touch_known(&mut self, id: &WorkerId, now: Millis) -> Option<&mut Worker> {
        let worker = self.by_id.get_mut(id)?;
        // The check finds the later end by itself: no reordering on every ping.
        worker.seen_at = worker.seen_at.max(now);
        Some(worker)
    }

    /// Every worker counts as seen now, and may take until `stop_by` to let go of jobs that it is to stop.
    pub(crate) fn renew_all(&mut self, now: Millis, stop_by: Millis) {
        for worker in self.by_id.values_mut() {
            worker.seen_at = worker.seen_at.max(now);
            for stopping in &mut worker.stopping {
                stopping.by = stopping.by.max(stop_by);
            }
        }
    }

    /// Plans the next look at every worker after the lease or the time they were seen changed.
    pub(crate) fn schedule_all(&mut self, lease_ms: u64) {
        let ids: Vec<WorkerId> = self.by_id.keys().cloned().collect();
        for id in ids {
            self.schedule(&id, lease_ms);
        }
    }

    /// Plans the next look at a worker after something about it changed that may make it due earlier. What makes it due
    /// later needs none: an earlier look stays planned, and finds out by itself. With most jobs that a worker gets and
    /// ends, nothing has to move.
    pub(crate) fn schedule(&mut self, id: &WorkerId, lease_ms: u64) {
        let Some(worker) = self.by_id.get_mut(id) else { return };
        let at = worker.next_check(lease_ms);
        if at < worker.check_at {
            self.checks.remove(&(worker.check_at, id.clone()));
            self.checks.insert((at, id.clone()));
            worker.check_at = at;
        }
    }

    pub(crate) fn next_check(&self) -> Option<Millis> {
        self.checks.first().map(|(at, _)| *at)
    }

    /// A worker whose check is due; its entry is gone until it is scheduled again.
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

    pub(crate) fn remove(&mut self, id: &WorkerId) {
        if let Some(worker) = self.by_id.remove(id) {
            assert!(worker.held.is_empty(), "a worker that is forgotten holds no job");
            self.checks.remove(&(worker.check_at, id.clone()));
        }
    }

    /// Takes a job out of a worker's hands.
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

    /// Every worker is looked at in time, and nothing else is planned.
    #[cfg(test)]
    pub(crate) fn assert_checks(&self, lease_ms: u64) {
        let planned = |worker: &Worker| worker.check_at < Millis::MAX;
        for (id, worker) in &self.by_id {
            assert!(worker.check_at <= worker.next_check(lease_ms), "{id} is looked at too late: {worker:?}");
            let listed = self.checks.contains(&(worker.check_at, id.clone()));
            assert_eq!(listed, planned(worker), "{id} is listed as planned: {worker:?}");
        }
        let planned = self.by_id.values().filter(|worker| planned(worker)).count();
        assert_eq!(self.checks.len(), planned, "no stray check");
    }
}
