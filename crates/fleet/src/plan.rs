//! The steps from the present fleet to the wanted one.

use alloc::vec::Vec;
use core::cmp::Reverse;

use longshore_model::{Millis, WorkerId, WorkerPhase};
use longshore_planted::{Bug, planted};

use crate::{Backoff, FleetLoad, ScalingRules, demand};

/// A worker that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWorker {
    /// Its id.
    pub id: WorkerId,
    /// The endpoint's version that it was started for; none for a worker from outside, which counts but is
    /// nobody's to stop.
    pub version: Option<u32>,
    /// What it is doing.
    pub phase: WorkerPhase,
    /// How many jobs it holds.
    pub running: u32,
    /// For how long it has held none.
    pub idle_ms: u64,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start a worker of the present version.
    Start,
    /// Give it no more jobs. When it holds none, a later plan stops it.
    Drain(WorkerId),
    /// It was drained and holds nothing: stop it.
    Stop(WorkerId),
}

/// What to do now, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// Workers that would be started if their command did not keep crashing.
    pub unhealthy: u32,
    /// Workers of older versions whose place is still empty, for the next plan: less one for each worker that is
    /// really started.
    pub owed: u32,
    /// When to ask again if nothing happens before.
    pub look_at: Option<Millis>,
}

/// The steps from the `present` fleet to the one that the rules and the load ask for.
///
/// Running jobs are never interrupted: a busy worker that must go is drained. `owed` is what came of the plan before:
/// so many workers of older versions went, or are going, without another one in their place.
pub fn plan(
    now: Millis,
    rules: &ScalingRules,
    load: &FleetLoad,
    present: &[PlannedWorker],
    backoff: &Backoff,
    owed: u32,
) -> Plan {
    let mut planning = Planner { now, steps: Vec::new(), look_at: None };
    planning.stop_the_drained(present);
    let owed = owed + planning.drain_the_outdated(present, rules.version);
    let is_outdated = |w: &PlannedWorker| w.version.is_some_and(|version| version != rules.version);
    let owed = if load.queued_normal > 0 || present.iter().any(is_outdated) { owed } else { 0 };
    let outside = present.iter().filter(|w| w.version.is_none() && w.phase != WorkerPhase::Draining).count();
    let mut ours: Vec<&PlannedWorker> = present
        .iter()
        .filter(|w| w.version == Some(rules.version) && w.phase != WorkerPhase::Draining)
        .collect();
    planning.drain_the_excess(&mut ours, rules.workers_max as usize);

    let starting = ours.iter().filter(|w| w.phase == WorkerPhase::Initializing).count() as u32;
    let here = (ours.len() + outside) as u32;
    let demand = demand(rules, load, here - starting, starting);
    planning.drain_the_idle(&ours, here.saturating_sub(demand.keep), rules.idle_timeout_ms);
    planning.look_in(demand.grows_in_ms);

    // Those that still have to end take up room, too: they hold memory and GPUs until they are gone.
    let takes_room = |w: &&PlannedWorker| {
        w.version.is_some() && !(w.phase == WorkerPhase::Draining && planted(Bug::TooManyWorkers))
    };
    let room = rules.workers_max.saturating_sub(present.iter().filter(takes_room).count() as u32);
    // A fleet that is busy stays as large as it was: what waits would otherwise have to convince the scaler anew.
    let useful = u32::try_from(load.queued_normal.div_ceil(rules.max_concurrency.max(1))).unwrap_or(u32::MAX);
    let replacing = owed.min(useful.saturating_sub(starting));
    let missing = demand.grow_to.saturating_sub(here).max(replacing).min(room);
    let unhealthy = planning.start(missing, starting, backoff);
    Plan { steps: planning.steps, unhealthy, owed, look_at: planning.look_at }
}

/// A plan in the making.
struct Planner {
    now: Millis,
    steps: Vec<Step>,
    look_at: Option<Millis>,
}

impl Planner {
    fn look_in(&mut self, ms: Option<u64>) {
        if let Some(ms) = ms {
            let at = self.now + ms.max(1);
            self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
        }
    }

    fn drain(&mut self, worker: &PlannedWorker) {
        if planted(Bug::DrainKills) {
            return self.steps.push(Step::Stop(worker.id.clone()));
        }
        self.steps.push(Step::Drain(worker.id.clone()));
    }

    fn stop_the_drained(&mut self, present: &[PlannedWorker]) {
        let done =
            |w: &&PlannedWorker| w.version.is_some() && w.phase == WorkerPhase::Draining && w.running == 0;
        self.steps.extend(present.iter().filter(done).map(|w| Step::Stop(w.id.clone())));
    }

    /// Answers how many.
    fn drain_the_outdated(&mut self, present: &[PlannedWorker], version: u32) -> u32 {
        let outdated =
            |w: &&PlannedWorker| w.version.is_some_and(|v| v != version) && w.phase != WorkerPhase::Draining;
        present.iter().filter(outdated).map(|worker| self.drain(worker)).count() as u32
    }

    /// Idle ones go first, the busiest last.
    fn drain_the_excess(&mut self, ours: &mut Vec<&PlannedWorker>, workers_max: usize) {
        ours.sort_by_key(|w| {
            let rank = match w.phase {
                WorkerPhase::Idle => 0,
                WorkerPhase::Initializing => 1,
                WorkerPhase::Running | WorkerPhase::Draining => 2,
            };
            (rank, w.running, Reverse(w.idle_ms))
        });
        let excess = ours.len().saturating_sub(workers_max);
        for worker in ours.drain(..excess) {
            self.drain(worker);
        }
    }

    /// Those that have idled for longest go first, as far as `spare` ones are there.
    fn drain_the_idle(&mut self, ours: &[&PlannedWorker], spare: u32, timeout_ms: u64) {
        let spare = if planted(Bug::OneIdleKept) { spare.saturating_sub(1) } else { spare };
        for worker in ours.iter().filter(|w| w.phase == WorkerPhase::Idle).take(spare as usize) {
            if worker.idle_ms >= timeout_ms {
                self.drain(worker);
            } else {
                self.look_in(Some(timeout_ms - worker.idle_ms));
            }
        }
    }

    /// Starts what is missing; answers how many were held back because the command keeps crashing. After
    /// crashes only one is tried at a time.
    fn start(&mut self, missing: u32, starting: u32, backoff: &Backoff) -> u32 {
        if let Some(until) = backoff.wait_until(self.now) {
            self.look_in(Some(until.since(self.now)));
            return missing.max(1);
        }
        let starts = if backoff.is_failing() { missing.min(1_u32.saturating_sub(starting)) } else { missing };
        self.steps.extend((0..starts).map(|_| Step::Start));
        missing - starts
    }
}

#[cfg(test)]
mod tests;
