//! The workers that a supervisor answers for, and what it makes of what happens to them. Nothing here waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_fleet::{Backoff, FleetLoad, Plan, PlannedWorker, STABLE_UPTIME_MS, ScalingRules, Step, plan};
use longshore_launch::{RunningWorker, WorkerExit, WorkerSpec};
use longshore_model::{Millis, Placement, WorkerId, WorkerPhase};
use tokio::time::Instant;

use super::{FleetStatus, WorkerStatus};
use crate::FleetView;

/// What is to become of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DesiredState {
    /// It serves.
    Serves,
    /// It gets no more jobs.
    Drains,
    /// The launcher is ending it.
    Stops,
}

/// A worker that the supervisor answers for.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that hold or not, each by itself")]
struct FleetWorker {
    version: u32,
    placement: Placement,
    /// Until when it should ask for its first job.
    asks_by: Instant,
    /// The launcher is still starting it.
    is_starting: bool,
    /// The queue knows that it is ours.
    registered: bool,
    /// Since when it has asked for jobs.
    ready_since: Option<Millis>,
    /// How many jobs it held when last looked at.
    held: u32,
    /// It let go of a job and lived on.
    has_served: bool,
    desired: DesiredState,
    /// The queue knows that it gets no more jobs.
    is_drained: bool,
}

impl FleetWorker {
    fn new(version: u32, placement: Placement, asks_by: Instant) -> Self {
        Self {
            version,
            placement,
            asks_by,
            is_starting: false,
            registered: false,
            ready_since: None,
            held: 0,
            has_served: false,
            desired: DesiredState::Serves,
            is_drained: false,
        }
    }
}

/// What the queue is to be told of a worker that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostWorker {
    pub(super) worker: WorkerId,
    /// Nobody asked it to end: jobs that it held count a retry.
    pub(super) counts_retry: bool,
    /// It was asked to end, or had its turn to.
    pub(super) expected: bool,
    pub(super) reason: String,
}

/// The workers of one endpoint.
#[derive(Debug, Default)]
pub(super) struct FleetState {
    workers: BTreeMap<WorkerId, FleetWorker>,
    backoff: Backoff,
    /// Workers of older versions whose place is still empty.
    unreplaced: u32,
    last_crash: Option<Arc<str>>,
    /// The endpoint is deleted: every worker goes, and none comes.
    closing: bool,
}

impl FleetState {
    /// The launcher runs this worker.
    pub(super) fn add(&mut self, present: RunningWorker, asks_by: Instant) {
        let fate = if present.is_stopping { DesiredState::Stops } else { DesiredState::Serves };
        let member = FleetWorker::new(present.version, present.placement, asks_by);
        self.workers.insert(present.worker, FleetWorker { desired: fate, ..member });
    }

    /// The launcher is starting this worker. It counts as one that is there.
    pub(super) fn starts(&mut self, spec: &WorkerSpec, asks_by: Instant) {
        self.unreplaced = self.unreplaced.saturating_sub(1);
        let member = FleetWorker::new(spec.version, spec.placement.clone(), asks_by);
        self.workers.insert(spec.worker.clone(), FleetWorker { is_starting: true, ..member });
    }

    /// The launcher has started this worker. Answers whether it is to end it already.
    pub(super) fn started(&mut self, worker: &WorkerId) -> bool {
        self.workers.get_mut(worker).is_some_and(|member| {
            member.is_starting = false;
            member.desired == DesiredState::Stops
        })
    }

    /// The workers that are to serve and have not asked for a job in time.
    pub(super) fn overdue(&self, now: Instant) -> Vec<WorkerId> {
        self.unheard().filter(|(_, m)| m.asks_by <= now).map(|(id, _)| id.clone()).collect()
    }

    /// When the next worker will not have asked for a job in time.
    pub(super) fn next_overdue(&self) -> Option<Instant> {
        self.unheard().map(|(_, m)| m.asks_by).min()
    }

    fn unheard(&self) -> impl Iterator<Item = (&WorkerId, &FleetWorker)> {
        self.workers.iter().filter(|(_, m)| m.desired == DesiredState::Serves && m.ready_since.is_none())
    }

    /// There is no such worker any more, or there never was, and nobody will say how it ended.
    pub(super) fn forget(&mut self, worker: &WorkerId) {
        self.workers.remove(worker);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// The workers that the queue has to be told are ours.
    pub(super) fn unregistered(&self) -> Vec<WorkerId> {
        self.workers
            .iter()
            .filter(|(_, m)| !m.registered && !m.is_starting)
            .map(|(id, _)| id.clone())
            .collect()
    }

    pub(super) fn registered(&mut self, worker: &WorkerId) {
        if let Some(member) = self.workers.get_mut(worker) {
            member.registered = true;
        }
    }

    /// The workers that the queue has to be told to give no more jobs. It must know them.
    pub(super) fn undrained(&self) -> Vec<WorkerId> {
        let untold = |m: &FleetWorker| m.desired != DesiredState::Serves && m.registered && !m.is_drained;
        self.workers.iter().filter(|(_, m)| untold(m)).map(|(id, _)| id.clone()).collect()
    }

    pub(super) fn drained(&mut self, worker: &WorkerId) {
        if let Some(member) = self.workers.get_mut(worker) {
            member.is_drained = true;
        }
    }

    /// The worker gets no more jobs from now on.
    pub(super) fn drain(&mut self, worker: &WorkerId) {
        if let Some(member) = self.workers.get_mut(worker).filter(|m| m.desired == DesiredState::Serves) {
            member.desired = DesiredState::Drains;
        }
    }

    /// The worker is to end. False if the launcher has to do nothing now: it is ending it already, or still has to
    /// start it, or there is none.
    pub(super) fn stop(&mut self, worker: &WorkerId) -> bool {
        let member = self.workers.get_mut(worker).filter(|m| m.desired != DesiredState::Stops);
        member.is_some_and(|member| {
            member.desired = DesiredState::Stops;
            !member.is_starting
        })
    }

    /// The endpoint is deleted.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether this is a worker of ours that is not being ended: with one that is, everything ends.
    pub(super) fn runs(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|member| member.desired != DesiredState::Stops)
    }

    pub(super) fn everyone(&self) -> Vec<WorkerId> {
        self.workers.keys().cloned().collect()
    }

    /// The command may be another one now: it gets a fresh chance.
    pub(super) fn configured(&mut self) {
        self.backoff.forget();
    }

    /// A worker could not even be started.
    pub(super) fn not_started(&mut self, now: Millis, reason: &str) {
        self.backoff.crashed(now, 0);
        self.last_crash = Some(reason.into());
    }

    /// A worker is being replaced for this reason. One that never asked for a job would do no better next time.
    pub(super) fn replaced(&mut self, now: Millis, worker: &WorkerId, reason: &str) {
        if self.workers.get(worker).is_some_and(|member| member.ready_since.is_none()) {
            self.not_started(now, reason);
        }
    }

    /// A worker ended: what the queue is to be told. Of one that is not on the list, an earlier server knew.
    pub(super) fn exited(&mut self, now: Millis, exited: &WorkerExit) -> LostWorker {
        let member = self.workers.remove(&exited.worker);
        let fate = member.as_ref().map_or(DesiredState::Serves, |m| m.desired);
        let was_ready = member.as_ref().is_some_and(|m| m.ready_since.is_some());
        let has_served = member.as_ref().is_some_and(|m| m.has_served);
        let clean = exited.code == Some(0);
        let reason = describe(exited);
        let asked_to = exited.expected || fate == DesiredState::Stops;
        // One that gets no more jobs may go when it has none left.
        let expected = asked_to || (clean && fate != DesiredState::Serves);
        if member.is_some() && !expected && !(clean && was_ready) {
            // It worked before: rather the fault of a job than of the command.
            self.backoff.crashed(now, if has_served { STABLE_UPTIME_MS } else { exited.ran_ms });
            self.last_crash = Some(reason.as_str().into());
        }
        LostWorker { worker: exited.worker.clone(), counts_retry: !asked_to, expected, reason }
    }

    /// What to do now, and when to look again.
    pub(super) fn plan(
        &mut self,
        now: Millis,
        mut rules: ScalingRules,
        view: &FleetView,
    ) -> (Plan, FleetStatus) {
        self.observe(now, view);
        if self.closing {
            rules.workers_max = 0;
        }
        let load = FleetLoad {
            queued_normal: view.queued_normal,
            running: view.running,
            oldest_normal_wait_ms: view.oldest_normal_wait_ms.unwrap_or(0),
        };
        let fleet = self.fleet(view);
        let mut plan = plan(now, &rules, &load, &fleet, &self.backoff, self.unreplaced);
        self.unreplaced = plan.unreplaced;
        // The launcher is at it already.
        plan.steps.retain(|step| match step {
            Step::Stop(id) => self.workers.get(id).is_some_and(|m| m.desired != DesiredState::Stops),
            Step::Start | Step::Drain(_) => true,
        });
        let starting = |w: &&PlannedWorker| w.version.is_some() && w.phase == WorkerPhase::Initializing;
        let status = FleetStatus {
            initializing: fleet.iter().filter(starting).count() as u32,
            unhealthy: plan.unhealthy,
            last_crash: self.last_crash.clone(),
            workers: self.kept(),
            ..FleetStatus::default()
        };
        (plan, status)
    }

    /// Notes who has asked for jobs by now, and whether one has shown that the command works.
    fn observe(&mut self, now: Millis, view: &FleetView) {
        for seen in &view.workers {
            let Some(member) = self.workers.get_mut(&seen.id) else { continue };
            let asked = matches!(seen.phase, WorkerPhase::Idle | WorkerPhase::Running);
            if asked && member.ready_since.is_none() {
                member.ready_since = Some(now);
            }
            member.has_served |= asked && seen.running < member.held;
            member.held = seen.running;
            let lived_ms = member.ready_since.map_or(0, |since| now.since(since));
            if member.has_served || lived_ms >= STABLE_UPTIME_MS {
                self.backoff.lived(STABLE_UPTIME_MS);
                self.last_crash = None;
            }
        }
    }

    /// Whether a worker that is up could show, by living on, that the command works.
    pub(super) fn is_on_probation(&self) -> bool {
        self.last_crash.is_some() && self.workers.values().any(|m| m.ready_since.is_some())
    }

    fn kept(&self) -> Arc<[WorkerStatus]> {
        let kept = self.workers.iter().map(|(id, member)| WorkerStatus {
            id: id.clone(),
            version: member.version,
            placement: member.placement.clone(),
        });
        kept.collect()
    }

    /// The workers as the plan sees them: ours, then those from outside.
    fn fleet(&self, view: &FleetView) -> Vec<PlannedWorker> {
        let seen = |id: &WorkerId| view.workers.iter().find(|w| w.id == *id);
        let ours = self.workers.iter().map(|(id, member)| {
            let seen = seen(id);
            let phase = match member.desired {
                DesiredState::Serves => seen.map_or(WorkerPhase::Initializing, |w| w.phase),
                DesiredState::Drains | DesiredState::Stops => WorkerPhase::Draining,
            };
            let (running, idle_ms) = seen.map_or((0, 0), |w| (w.running, w.idle_ms));
            PlannedWorker { id: id.clone(), version: Some(member.version), phase, running, idle_ms }
        });
        let outsiders =
            view.workers.iter().filter(|w| !self.workers.contains_key(&w.id)).map(|w| PlannedWorker {
                id: w.id.clone(),
                version: None,
                phase: w.phase,
                running: w.running,
                idle_ms: w.idle_ms,
            });
        ours.chain(outsiders).collect()
    }
}

/// How a worker ended, in words for the job's owner.
fn describe(exited: &WorkerExit) -> String {
    let how = match (&exited.because, exited.code, exited.signal) {
        (Some(because), _, _) => format!("was {because}"),
        (None, Some(code), _) => format!("exited with code {code}"),
        (None, None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None, None) => "vanished".to_owned(),
    };
    let mut text = format!("worker {} {how} after {} s", exited.worker, exited.ran_ms / 1_000);
    if !exited.log_tail.is_empty() {
        text.push_str("; its last log lines:\n");
        text.push_str(&exited.log_tail);
    }
    text
}
