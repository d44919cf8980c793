//! The steps from the present fleet to the one that the load needs.

use alloc::vec::Vec;
use core::cmp::Reverse;

use longshore_model::{Millis, StopReason, WorkerId, WorkerPhase};
use longshore_planted::{Bug, planted};

use crate::{Backoff, FleetLoad, ScalingRules, demand};

/// How long a worker without a request counts as used, in ms.
const UNUSED_MS: u64 = 1_000;

/// A worker of the endpoint, as the planner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedWorker {
    /// The id of the worker.
    pub id: WorkerId,
    /// The endpoint's version that the worker was started for. `None`: an external worker, which counts as present and is
    /// never stopped.
    pub version: Option<u32>,
    /// The phase in which the worker is.
    pub phase: WorkerPhase,
    /// The number of jobs that the worker runs.
    pub running: u32,
    /// How long the worker has run no job, in ms; 0 while it runs one.
    pub idle_ms: u64,
    /// The worker has not sent its first take, and half of the wait for it is over: its start may hang.
    pub is_late: bool,
}

/// One action of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start a worker of the present version.
    Start,
    /// Drain the worker, for the reason given. When the worker runs no job, a later plan stops it.
    Drain(WorkerId, StopReason),
    /// Stop a drained worker that runs no job.
    Stop(WorkerId),
}

/// The steps to take now, and when to plan again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in the order in which they are taken.
    pub steps: Vec<Step>,
    /// The number of workers that are not started yet because earlier ones crashed.
    pub unhealthy: u32,
    /// The number of drained workers of older versions that are not replaced yet. The caller subtracts one for each
    /// worker that it starts, and passes the rest to the next plan.
    pub unreplaced: u32,
    /// When to plan again if nothing changes before; `None`: only after a change.
    pub look_at: Option<Millis>,
    /// The idle workers that are to end, and when each is drained if it gets no job before.
    pub idle_ends: Vec<(WorkerId, Millis)>,
}

/// The steps from the `present` fleet to the one that the rules and the load ask for.
///
/// Running jobs are never interrupted: a busy worker that must end is drained. `unreplaced` is [`Plan::unreplaced`] of
/// the plan before, less the workers that were started since.
pub fn plan(
    now: Millis,
    rules: &ScalingRules,
    load: &FleetLoad,
    present: &[PlannedWorker],
    backoff: &Backoff,
    unreplaced: u32,
) -> Plan {
    let mut planning = Planner { now, steps: Vec::new(), look_at: None, idle_ends: Vec::new() };
    planning.stop_the_drained(present);
    let drained = match replaced_first(rules, load, present) {
        None => planning.drain_the_outdated(present, rules.version, usize::MAX),
        Some(replaced) => planning.drain_the_outdated(present, rules.version, replaced),
    };
    let unreplaced = unreplaced + drained;
    let is_outdated = |w: &PlannedWorker| w.version.is_some_and(|version| version != rules.version);
    let unreplaced = if load.queued_normal > 0 || present.iter().any(is_outdated) { unreplaced } else { 0 };
    let external = present.iter().filter(|w| w.version.is_none() && w.phase != WorkerPhase::Draining).count();
    let mut managed: Vec<&PlannedWorker> = present
        .iter()
        .filter(|w| w.version == Some(rules.version) && w.phase != WorkerPhase::Draining)
        .collect();
    planning.drain_the_excess(&mut managed, rules.workers_max as usize);

    let is_starting = |w: &&&PlannedWorker| w.phase == WorkerPhase::Initializing;
    // While jobs wait, other workers are started beside one whose start may hang.
    let is_ignored = |w: &&&PlannedWorker| w.is_late && load.queued_normal > 0;
    let late = managed.iter().filter(is_starting).filter(is_ignored).count();
    let starting = (managed.iter().filter(is_starting).count() - late) as u32;
    let here = (managed.len() - late + external) as u32;
    let demand = demand(rules, load, here - starting, starting);
    planning.drain_the_idle(&managed, here.saturating_sub(demand.keep), rules.idle_timeout_ms);
    planning.look_in(demand.grows_in_ms);

    // Draining workers count too: they hold memory and GPUs until they exit.
    let takes_room = |w: &&PlannedWorker| {
        w.version.is_some() && !(w.phase == WorkerPhase::Draining && planted(Bug::TooManyWorkers))
    };
    let room = rules.workers_max.saturating_sub(present.iter().filter(takes_room).count() as u32);
    // Workers of older versions are replaced without waiting for the scaler, so that a busy fleet keeps its size.
    let useful = u32::try_from(load.queued_normal.div_ceil(rules.max_concurrency.max(1))).unwrap_or(u32::MAX);
    let outdated = serving_outdated(rules, present).count() as u32;
    let replacing = if rules.is_balanced {
        // The workers of older versions serve on, until others are up.
        (unreplaced + outdated).saturating_sub(here)
    } else {
        unreplaced.min(useful.saturating_sub(starting))
    };
    let missing = demand.grow_to.saturating_sub(here).max(replacing).min(room);
    let unhealthy = planning.start(missing, starting, backoff);
    debug_assert!(
        planted(Bug::DrainKills) || !interrupts_a_job(&planning.steps, present),
        "a plan stops no worker that runs a job"
    );
    let Planner { steps, look_at, idle_ends, .. } = planning;
    Plan { steps, unhealthy, unreplaced, look_at, idle_ends }
}

/// The managed workers of older versions that are not drained.
fn serving_outdated<'a>(
    rules: &ScalingRules,
    present: &'a [PlannedWorker],
) -> impl Iterator<Item = &'a PlannedWorker> {
    let version = rules.version;
    present.iter().filter(move |worker| {
        worker.version.is_some_and(|started_for| started_for != version)
            && worker.phase != WorkerPhase::Draining
    })
}

/// How many workers of older versions may be drained now, so that requests never lack a worker; `None`: all of them.
///
/// They are drained once as many workers of the present version are up, or if no request has used one of them for a second.
/// Without room for another worker, one of them makes room if no other worker starts.
fn replaced_first(rules: &ScalingRules, load: &FleetLoad, present: &[PlannedWorker]) -> Option<usize> {
    let outdated = serving_outdated(rules, present).count();
    let is_unused = |w: &PlannedWorker| w.phase == WorkerPhase::Initializing || w.idle_ms >= UNUSED_MS;
    let is_quiet = rules.workers_min == 0
        && load.queued_normal + load.running == 0
        && serving_outdated(rules, present).all(is_unused);
    if !rules.is_balanced || outdated == 0 || is_quiet || rules.workers_max == 0 {
        return None;
    }
    let of_version = || present.iter().filter(|w| w.version == Some(rules.version));
    let up = of_version().filter(|w| matches!(w.phase, WorkerPhase::Idle | WorkerPhase::Running)).count();
    let starting = of_version().filter(|w| w.phase == WorkerPhase::Initializing).count();
    let held = present.iter().filter(|w| w.version.is_some()).count();
    if up >= outdated {
        return None;
    }
    let is_ending = present.iter().any(|w| w.version.is_some() && w.phase == WorkerPhase::Draining);
    let makes_room = held >= rules.workers_max as usize && starting == 0 && !is_ending;
    Some(usize::from(makes_room))
}

/// Whether a step stops a worker that runs a job.
fn interrupts_a_job(steps: &[Step], present: &[PlannedWorker]) -> bool {
    let is_busy = |id: &WorkerId| present.iter().any(|worker| worker.id == *id && worker.running > 0);
    steps.iter().any(|step| matches!(step, Step::Stop(id) if is_busy(id)))
}

/// The plan so far.
struct Planner {
    now: Millis,
    steps: Vec<Step>,
    look_at: Option<Millis>,
    idle_ends: Vec<(WorkerId, Millis)>,
}

impl Planner {
    fn look_in(&mut self, ms: Option<u64>) {
        if let Some(ms) = ms {
            let at = self.now + ms.max(1);
            self.look_at = Some(self.look_at.map_or(at, |before| before.min(at)));
        }
    }

    fn drain(&mut self, worker: &PlannedWorker, reason: StopReason) {
        if planted(Bug::DrainKills) {
            return self.steps.push(Step::Stop(worker.id.clone()));
        }
        self.steps.push(Step::Drain(worker.id.clone(), reason));
    }

    fn stop_the_drained(&mut self, present: &[PlannedWorker]) {
        let done =
            |w: &&PlannedWorker| w.version.is_some() && w.phase == WorkerPhase::Draining && w.running == 0;
        self.steps.extend(present.iter().filter(done).map(|w| Step::Stop(w.id.clone())));
    }

    /// Drains at most this number of workers of other versions, those first that are not up. Returns their number.
    fn drain_the_outdated(&mut self, present: &[PlannedWorker], version: u32, most: usize) -> u32 {
        let outdated =
            |w: &&PlannedWorker| w.version.is_some_and(|v| v != version) && w.phase != WorkerPhase::Draining;
        let mut outdated: Vec<_> = present.iter().filter(outdated).collect();
        if most < outdated.len() {
            outdated.sort_by_key(|w| (w.phase != WorkerPhase::Initializing, w.running));
        }
        outdated.into_iter().take(most).map(|worker| self.drain(worker, StopReason::NewVersion)).count()
            as u32
    }

    /// Drains the workers above the maximum: idle ones first, the busiest last.
    fn drain_the_excess(&mut self, managed: &mut Vec<&PlannedWorker>, workers_max: usize) {
        managed.sort_by_key(|w| {
            let rank = match w.phase {
                WorkerPhase::Idle => 0,
                WorkerPhase::Initializing => 1,
                WorkerPhase::Running | WorkerPhase::Draining => 2,
            };
            (rank, w.running, Reverse(w.idle_ms))
        });
        let excess = managed.len().saturating_sub(workers_max);
        for worker in managed.drain(..excess) {
            self.drain(worker, StopReason::WorkersMax);
        }
    }

    /// Drains up to `spare` workers that have idled for `timeout_ms`, the longest idle first.
    fn drain_the_idle(&mut self, managed: &[&PlannedWorker], spare: u32, timeout_ms: u64) {
        let spare = if planted(Bug::OneIdleKept) { spare.saturating_sub(1) } else { spare };
        for worker in managed.iter().filter(|w| w.phase == WorkerPhase::Idle).take(spare as usize) {
            if worker.idle_ms >= timeout_ms {
                self.drain(worker, StopReason::Idle);
            } else {
                let left_ms = timeout_ms - worker.idle_ms;
                self.look_in(Some(left_ms));
                self.idle_ends.push((worker.id.clone(), self.now + left_ms));
            }
        }
    }

    /// Starts the missing workers. Returns how many are held back because of crashes: after a crash, one worker starts at
    /// a time.
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
