//! The managed workers of one endpoint, and what each event changes about them. Nothing here waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_fleet::{
    Backoff, CrashKind, FleetFacts, FleetLoad, IdleGaps, ManagedWorker, Plan, PlannedWorker,
    STABLE_UPTIME_MS, ScalingRules, Step, WorkerHealth, plan,
};
use longshore_launch::{RunningWorker, WorkerExit, WorkerSpec};
use longshore_model::{
    HttpPorts, Millis, Placement, Served, StartCause, StartStage, StopReason, WorkerId, WorkerPhase,
};
use tokio::time::Instant;

use super::crash_series::{Crash, CrashSeries};
use super::start_patience::StartPatience;
use super::start_times::RecentStarts;
use super::{FleetStatus, WorkerStatus};
use crate::{FleetView, WorkerView};

/// The state that the supervisor wants for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DesiredState {
    /// The worker takes jobs.
    Serving,
    /// The worker gets no further job; a later plan stops it.
    Draining,
    /// The worker is being stopped, or its start is being cancelled.
    Stopping,
}

/// A managed worker, from the begin of its start to its exit.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that hold or not, each by itself")]
struct FleetWorker {
    /// The endpoint's version that the worker was started for.
    version: u32,
    placement: Placement,
    /// How long its first take is waited for.
    patience: StartPatience,
    /// The launcher is starting the worker.
    is_starting: bool,
    /// What the launcher reported last of the start; `None` once the worker runs, and if it reported nothing.
    stage: Option<StartStage>,
    /// The queue knows the worker as a managed one.
    is_registered: bool,
    /// When the first take of the worker was observed; `None` before.
    ready_since: Option<Millis>,
    /// The number of running jobs at the last pass.
    running: u32,
    /// When the idle worker is drained if it gets no job before, by the last plan.
    idle_end: Option<Millis>,
    /// The number of jobs that the worker had ended at the last pass.
    jobs_done: u64,
    /// The worker has finished a job and kept running.
    has_served: bool,
    /// As `has_served`, since the last crash of any worker.
    has_served_since_crash: bool,
    desired: DesiredState,
    /// The result of its last health check; `None` before, and for a worker that takes jobs.
    last_check: Option<Arc<str>>,
    /// Why the worker is drained or stopped; `None` while it serves.
    stop_reason: Option<StopReason>,
    /// The queue gives the worker no further job.
    is_drained: bool,
    /// Its machine does not answer. The worker counts as none, and keeps its GPUs.
    is_away: bool,
}

impl FleetWorker {
    /// Whether the worker shows, after a crash, that the command works: it became ready since and served a job, or ran for
    /// [`STABLE_UPTIME_MS`] since. A job of one that was ready before shows nothing about the next start.
    fn shows_success(&self, now: Millis, last_crash_at: Millis) -> bool {
        self.ready_since.is_some_and(|ready| {
            ready >= last_crash_at && self.has_served_since_crash
                || now.since(ready.max(last_crash_at)) >= STABLE_UPTIME_MS
        })
    }

    fn new(version: u32, placement: Placement, patience: StartPatience) -> Self {
        Self {
            version,
            placement,
            patience,
            is_starting: false,
            stage: None,
            is_registered: false,
            ready_since: None,
            running: 0,
            idle_end: None,
            jobs_done: 0,
            has_served: false,
            has_served_since_crash: false,
            last_check: None,
            desired: DesiredState::Serving,
            stop_reason: None,
            is_drained: false,
            is_away: false,
        }
    }

    fn served(&self) -> Served {
        Served {
            ready_at: self.ready_since.filter(|_| !self.patience.is_adopted()),
            jobs_done: self.jobs_done,
        }
    }

    fn status(&self, id: &WorkerId) -> WorkerStatus {
        let Served { ready_at, jobs_done } = self.served();
        WorkerStatus {
            id: id.clone(),
            version: self.version,
            placement: self.placement.clone(),
            stage: self.stage,
            ready_at,
            jobs_done,
            is_ending: self.desired != DesiredState::Serving,
        }
    }
}

/// A worker that exited, as the supervisor reports it to the queue, which requeues its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostWorker {
    /// The id of the worker.
    pub(super) worker: WorkerId,
    /// The worker was not being stopped: its jobs count a retry.
    pub(super) counts_retry: bool,
    /// The worker was being stopped, or was drained and exited with code 0.
    pub(super) is_expected: bool,
    /// The exit counts as a crash.
    pub(super) is_crash: bool,
    /// What the worker did; `None` for a worker that is unknown here.
    pub(super) served: Option<Served>,
    /// How the worker exited, for the log and for the error of its jobs.
    pub(super) reason: String,
}

/// The start of a worker that has sent its first take.
#[derive(Clone, Debug)]
pub(super) struct EndedStart {
    /// The id of the worker.
    pub(super) worker: WorkerId,
    /// When the start began, and on which GPUs.
    pub(super) placement: Placement,
    /// When the first take was observed.
    pub(super) ready_at: Millis,
}

/// The managed workers of one endpoint. Volatile; one per supervisor.
#[derive(Debug, Default)]
pub(super) struct FleetState {
    workers: BTreeMap<WorkerId, FleetWorker>,
    backoff: Backoff,
    idle_gaps: IdleGaps,
    /// [`Plan::unreplaced`] of the last plan, less the workers that were started since.
    unreplaced: u32,
    /// [`FleetStatus::last_crash`].
    last_crash: Option<Arc<str>>,
    /// When it happened; 0 before the first one.
    last_crash_at: Millis,
    /// The endpoint's version at the last plan.
    version: u32,
    crashes: CrashSeries,
    recent_starts: RecentStarts,
    /// The starts that [`FleetState::take_starts`] has not returned yet.
    new_starts: Vec<EndedStart>,
    /// Since when a worker waits for GPUs; `None` if none does.
    throttled_since: Option<Millis>,
    /// Why the next worker is started, by the last plan.
    start_cause: Option<StartCause>,
    /// Why every worker is stopped and none started; `None` while the endpoint needs workers.
    closing: Option<StopReason>,
}

impl FleetState {
    /// Adds an adopted worker.
    pub(super) fn add(&mut self, present: RunningWorker, patience: StartPatience) {
        let desired = if present.is_stopping { DesiredState::Stopping } else { DesiredState::Serving };
        let entry = FleetWorker::new(present.version, present.placement, patience);
        self.workers.insert(present.worker, FleetWorker { desired, ..entry });
    }

    /// Adds a worker that the launcher is starting.
    pub(super) fn add_starting(&mut self, spec: &WorkerSpec, patience: StartPatience) {
        self.unreplaced = self.unreplaced.saturating_sub(1);
        let entry = FleetWorker::new(spec.version, spec.placement.clone(), patience);
        self.workers.insert(spec.worker.clone(), FleetWorker { is_starting: true, ..entry });
    }

    /// Completes the start of a worker. Returns the reason to stop it if the launcher must stop it now.
    pub(super) fn set_started(&mut self, worker: &WorkerId) -> Option<StopReason> {
        let entry = self.workers.get_mut(worker)?;
        entry.is_starting = false;
        entry.stage = None;
        entry.patience.begin();
        entry.stop_reason.clone().filter(|_| entry.desired == DesiredState::Stopping)
    }

    /// Notes the stage of a start in progress.
    pub(super) fn set_stage(&mut self, worker: &WorkerId, stage: StartStage) {
        if let Some(entry) = self.workers.get_mut(worker).filter(|entry| entry.is_starting) {
            entry.stage = Some(stage);
            if stage == StartStage::Starting {
                entry.patience.begin();
            }
        }
    }

    /// Notes whether a worker's machine is away.
    pub(super) fn set_away(&mut self, worker: &WorkerId, is_away: bool) {
        if let Some(entry) = self.workers.get_mut(worker) {
            entry.is_away = is_away;
        }
    }

    /// Removes a worker whose start failed. Returns whether the start was cancelled because the worker is being stopped.
    pub(super) fn remove_unstarted(&mut self, worker: &WorkerId) -> bool {
        self.workers.remove(worker).is_some_and(|entry| entry.desired == DesiredState::Stopping)
    }

    /// Returns the serving workers whose first take is overdue, each with the reason to replace it.
    pub(super) fn overdue(&self, now: Instant) -> Vec<(WorkerId, String)> {
        let is_overdue = |w: &FleetWorker| w.patience.ends_at().is_some_and(|at| at <= now);
        let overdue = self.before_first_take().filter(|(_, w)| is_overdue(w));
        overdue.map(|(id, w)| (id.clone(), w.patience.reason(id, w.last_check.as_deref()))).collect()
    }

    /// Returns when the next worker is late, or its first take overdue; `None` if every serving worker has sent its
    /// first take.
    pub(super) fn next_late(&self, now: Instant) -> Option<Instant> {
        let moments =
            self.before_first_take().flat_map(|(_, w)| [w.patience.late_at(), w.patience.ends_at()]);
        moments.flatten().filter(|at| *at > now).min()
    }

    /// The serving workers that have not sent their first take.
    fn before_first_take(&self) -> impl Iterator<Item = (&WorkerId, &FleetWorker)> {
        let waits =
            |w: &FleetWorker| w.desired == DesiredState::Serving && !w.is_away && w.ready_since.is_none();
        self.workers.iter().filter(move |(_, w)| waits(w))
    }

    /// Removes a worker whose exit will not be reported, because the events have ended.
    pub(super) fn remove(&mut self, worker: &WorkerId) {
        self.workers.remove(worker);
    }

    /// Returns whether there is no worker.
    pub(super) fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Returns the workers that run and that the queue does not know as managed ones.
    pub(super) fn unregistered(&self) -> Vec<WorkerId> {
        self.workers
            .iter()
            .filter(|(_, w)| !w.is_registered && !w.is_starting)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Returns the ports on which a worker serves HTTP; `None` for a worker that takes jobs.
    pub(super) fn http_ports(&self, worker: &WorkerId) -> Option<HttpPorts> {
        self.workers.get(worker)?.placement.http
    }

    /// Notes that the queue knows a worker as a managed one.
    pub(super) fn set_registered(&mut self, worker: &WorkerId) {
        if let Some(entry) = self.workers.get_mut(worker) {
            entry.is_registered = true;
        }
    }

    /// Returns the workers that the queue must drain. Workers that it does not know come later.
    pub(super) fn undrained(&self) -> Vec<WorkerId> {
        let is_undrained =
            |w: &FleetWorker| w.desired != DesiredState::Serving && w.is_registered && !w.is_drained;
        self.workers.iter().filter(|(_, w)| is_undrained(w)).map(|(id, _)| id.clone()).collect()
    }

    /// Notes that the queue has drained a worker.
    pub(super) fn set_drained(&mut self, worker: &WorkerId) {
        if let Some(entry) = self.workers.get_mut(worker) {
            entry.is_drained = true;
        }
    }

    /// Drains a worker; the next pass tells the queue.
    pub(super) fn drain(&mut self, worker: &WorkerId, reason: StopReason) {
        if let Some(entry) = self.workers.get_mut(worker).filter(|w| w.desired == DesiredState::Serving) {
            entry.desired = DesiredState::Draining;
            entry.stop_reason = Some(reason);
        }
    }

    /// Marks a worker as being stopped. The `reason` of its drain, if it is drained, stays. Returns the reason if the
    /// launcher must stop it now; `None` if it is being stopped already, or is unknown.
    pub(super) fn stop(&mut self, worker: &WorkerId, reason: StopReason) -> Option<StopReason> {
        let entry = self.workers.get_mut(worker).filter(|w| w.desired != DesiredState::Stopping)?;
        entry.desired = DesiredState::Stopping;
        Some(entry.stop_reason.get_or_insert(reason).clone())
    }

    /// Closes the fleet: from now on a plan starts no worker and stops every one.
    pub(super) fn close(&mut self, reason: StopReason) {
        self.closing = Some(reason);
    }

    /// Returns why the fleet is closed; `None` if it is open.
    pub(super) fn closing(&self) -> Option<&StopReason> {
        self.closing.as_ref()
    }

    /// Returns whether this is a managed worker that is not being stopped.
    pub(super) fn runs(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some_and(|entry| entry.desired != DesiredState::Stopping)
    }

    /// Returns the ids of all workers.
    pub(super) fn ids(&self) -> Vec<WorkerId> {
        self.workers.keys().cloned().collect()
    }

    /// Ends the wait after crashes, because the command may have changed.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff.forget();
        self.crashes.forget();
    }

    /// Counts a failed start as a crash.
    pub(super) fn record_failed_start(&mut self, now: Millis, worker: Option<&WorkerId>, reason: &str) {
        self.record_crash(
            now,
            0,
            reason,
            Crash::before_start(worker, CrashKind::NotStarted(reason.to_owned())),
        );
    }

    /// Counts a crash. `ran_ms` lengthens the wait before the next start unless it is long.
    fn record_crash(&mut self, now: Millis, ran_ms: u64, reason: &str, crash: Crash) {
        self.backoff.crashed(now, ran_ms);
        self.last_crash = Some(reason.into());
        self.last_crash_at = now;
        self.workers.values_mut().for_each(|worker| worker.has_served_since_crash = false);
        self.crashes.add(now, self.backoff.wait_until(now).unwrap_or(now), crash);
    }

    /// Returns the starts that ended since the last call.
    pub(super) fn take_starts(&mut self) -> Vec<EndedStart> {
        std::mem::take(&mut self.new_starts)
    }

    /// Notes at a pass whether a worker waits for GPUs.
    pub(super) fn set_throttled(&mut self, now: Millis, is_throttled: bool) {
        self.throttled_since = is_throttled.then(|| self.throttled_since.unwrap_or(now));
    }

    /// What the supervisor knows about why jobs wait.
    pub(super) fn facts(&self) -> FleetFacts {
        let workers = self.workers.iter().filter(|(_, worker)| !worker.is_away);
        let workers = workers.map(|(id, worker)| ManagedWorker {
            id: id.clone(),
            version: worker.version,
            started_at: worker.placement.started_at,
            is_ready: worker.ready_since.is_some(),
            is_leaving: worker.desired != DesiredState::Serving,
            is_busy: worker.running > 0,
            idle_end_at: worker.idle_end,
        });
        FleetFacts {
            workers: workers.collect(),
            crash: self.crashes.facts(),
            throttled_since: self.throttled_since,
            starts: self.recent_starts.times(),
        }
    }

    /// Counts the replacement of a worker as a crash if the worker never sent a take: the next one will likely fail
    /// too.
    pub(super) fn record_replacement(&mut self, now: Millis, worker: &WorkerId, reason: &str) {
        let Some(entry) = self.workers.get(worker).filter(|entry| entry.ready_since.is_none()) else {
            return;
        };
        let is_overdue = entry.patience.ends_at().is_some_and(|at| at <= Instant::now());
        let kind = if is_overdue {
            CrashKind::NeverReady(entry.patience.duration_ms())
        } else {
            CrashKind::NotStarted(reason.to_owned())
        };
        self.record_crash(now, 0, reason, Crash::before_start(Some(worker), kind));
    }

    /// Removes a worker that exited and returns it for the queue. An exit that was unexpected counts as a crash, unless
    /// the worker had been ready and exited with code 0. A worker that is unknown here was started by an earlier
    /// server.
    pub(super) fn record_exit(&mut self, now: Millis, exited: &WorkerExit) -> LostWorker {
        let entry = self.workers.remove(&exited.worker);
        let served = entry.as_ref().map(FleetWorker::served);
        let desired = entry.as_ref().map_or(DesiredState::Serving, |w| w.desired);
        let was_ready = entry.as_ref().is_some_and(|w| w.ready_since.is_some());
        let has_served = entry.as_ref().is_some_and(|w| w.has_served);
        let is_clean = exited.code == Some(0);
        let was_stopped = exited.expected || desired == DesiredState::Stopping;
        let takes_jobs = entry.as_ref().is_some_and(|w| w.placement.http.is_none());
        let took_no_job = takes_jobs && is_clean && !was_ready && !was_stopped;
        let reason = describe(exited, if took_no_job { START_HINT } else { "" });
        self.crashes.add_log(exited);
        // A drained worker may exit by itself.
        let is_expected = was_stopped || (is_clean && desired != DesiredState::Serving);
        let is_crash = !(is_expected || is_clean && was_ready);
        if entry.is_some() && is_crash {
            // A worker that served jobs shows that the command works: more likely a job caused the crash.
            let ran_ms = if has_served { STABLE_UPTIME_MS } else { exited.ran_ms };
            self.record_crash(now, ran_ms, &reason, Crash::of_exit(exited, was_ready));
        } else if entry.is_some_and(|w| w.version == self.version && w.has_served_since_crash) {
            self.forget_crash();
        }
        LostWorker {
            worker: exited.worker.clone(),
            counts_retry: !was_stopped,
            is_expected,
            is_crash,
            served,
            reason,
        }
    }

    /// Returns the plan for the present load and workers, and the status without what the steps of the plan find out.
    pub(super) fn plan(
        &mut self,
        now: Millis,
        mut rules: ScalingRules,
        view: &FleetView,
    ) -> (Plan, FleetStatus) {
        self.version = rules.version;
        self.observe(now, view);
        if self.closing.is_some() {
            rules.workers_max = 0;
        }
        let load = FleetLoad {
            queued_normal: view.queued_normal,
            running: view.running,
            oldest_normal_wait_ms: view.oldest_normal_wait_ms.unwrap_or(0),
        };
        let served = view.workers.iter().filter(|worker| worker.jobs_done > 0);
        self.idle_gaps.observe(now, &load, served.map(|worker| worker.idle_ms).min());
        let rules = rules.after(&self.idle_gaps);
        let fleet = self.fleet(view);
        let mut plan = plan(now, &rules, &load, &fleet, &self.backoff, self.unreplaced);
        self.start_cause = Some(match () {
            () if self.unreplaced.max(plan.unreplaced) > 0 => StartCause::NewVersion,
            () if load.queued_normal > 0 => StartCause::QueuedJobs,
            () => StartCause::WorkersMin,
        });
        self.unreplaced = plan.unreplaced;
        for (id, worker) in &mut self.workers {
            worker.idle_end = plan.idle_ends.iter().find(|(idle, _)| idle == id).map(|(_, at)| *at);
        }
        // These workers are being stopped already.
        plan.steps.retain(|step| match step {
            Step::Stop(id) => self.workers.get(id).is_some_and(|w| w.desired != DesiredState::Stopping),
            Step::Start | Step::Drain(..) => true,
        });
        let starting = |w: &&PlannedWorker| w.version.is_some() && w.phase == WorkerPhase::Initializing;
        let status = FleetStatus {
            initializing: fleet.iter().filter(starting).count() as u32,
            unhealthy: plan.unhealthy,
            last_crash: self.last_crash.clone(),
            workers: self.statuses(),
            ..FleetStatus::default()
        };
        (plan, status)
    }

    /// Notes which workers have sent their first take, and ends the wait after crashes if one shows that the command
    /// works.
    fn observe(&mut self, now: Millis, view: &FleetView) {
        let mut works = false;
        for seen in &view.workers {
            let Some(entry) = self.workers.get_mut(&seen.id) else { continue };
            let is_ready = matches!(seen.phase, WorkerPhase::Idle | WorkerPhase::Running);
            if is_ready && entry.ready_since.is_none() {
                entry.ready_since = Some(now);
                if !entry.patience.is_of_adoption() {
                    let start_ms = now.since(entry.placement.started_at);
                    self.recent_starts.add(start_ms);
                    let (worker, placement) = (seen.id.clone(), entry.placement.clone());
                    self.new_starts.push(EndedStart { worker, placement, ready_at: now });
                }
            }
            let ended_one = is_ready && seen.running < entry.running;
            entry.has_served |= ended_one;
            entry.has_served_since_crash |= ended_one;
            entry.running = seen.running;
            entry.jobs_done = seen.jobs_done;
            entry.last_check = seen.health.as_ref().map(|note| Arc::clone(&note.last_check));
            works |= entry.version == self.version && entry.shows_success(now, self.last_crash_at);
        }
        if works {
            self.forget_crash();
        }
    }

    /// Ends the wait after crashes, because a worker shows that the command works.
    fn forget_crash(&mut self) {
        self.backoff.lived(STABLE_UPTIME_MS);
        self.last_crash = None;
        self.crashes.forget();
    }

    /// Returns whether, after a crash, a ready worker can show by its uptime that the command works.
    pub(super) fn is_on_probation(&self) -> bool {
        let may_show = |w: &FleetWorker| w.ready_since.is_some() && w.version == self.version;
        self.last_crash.is_some() && self.workers.values().any(may_show)
    }

    /// Returns the status of every worker, by id.
    pub(super) fn statuses(&self) -> Arc<[WorkerStatus]> {
        self.workers.iter().map(|(id, entry)| entry.status(id)).collect()
    }

    /// Returns why the next worker is started; `None` before the first plan.
    pub(super) fn start_cause(&self) -> Option<StartCause> {
        self.start_cause
    }

    /// Returns the workers as the planner sees them: the managed ones, then the external ones.
    fn fleet(&self, view: &FleetView) -> Vec<PlannedWorker> {
        let now = Instant::now();
        let seen = |id: &WorkerId| view.workers.iter().find(|w| w.id == *id);
        let present = self.workers.iter().filter(|(_, entry)| !entry.is_away);
        let managed = present.map(|(id, entry)| {
            let seen = seen(id);
            let phase = match entry.desired {
                DesiredState::Serving => seen.map_or(WorkerPhase::Initializing, |w| w.phase),
                DesiredState::Draining | DesiredState::Stopping => WorkerPhase::Draining,
            };
            let (running, idle_ms) = seen.map_or((0, 0), |w| (w.running, w.idle_ms));
            let is_overdue = entry.patience.late_at().is_some_and(|at| at <= now);
            let is_sick =
                |w: &WorkerView| w.health.as_ref().is_some_and(|note| note.health == WorkerHealth::Unhealthy);
            let is_late = seen.is_some_and(is_sick) || entry.ready_since.is_none() && is_overdue;
            PlannedWorker { id: id.clone(), version: Some(entry.version), phase, running, idle_ms, is_late }
        });
        let external =
            view.workers.iter().filter(|w| !self.workers.contains_key(&w.id)).map(|w| PlannedWorker {
                id: w.id.clone(),
                version: None,
                phase: w.phase,
                running: w.running,
                idle_ms: w.idle_ms,
                is_late: false,
            });
        managed.chain(external).collect()
    }
}

/// Why a worker exits with code 0 before it asks for a job: its program ends without the SDK's loop.
const START_HINT: &str = ": the handler must call `runpod.serverless.start({\"handler\": handler})`, which asks for jobs and does not return";

/// The end of the first line of a reason whose next lines are of the worker's own log.
const LOG_FOLLOWS: &str = "; its last log lines:";

/// The first line of a reason: the next ones are of the worker's own log, which can hold payload.
pub(super) fn without_log(reason: &str) -> &str {
    reason.lines().next().unwrap_or_default().trim_end_matches(LOG_FOLLOWS)
}

/// Returns how a worker exited and then `hint`, as text for the error of its jobs.
fn describe(exited: &WorkerExit, hint: &str) -> String {
    let how = match (&exited.because, exited.code, exited.signal) {
        (Some(because), _, _) => format!("was {because}"),
        (None, Some(code), _) => format!("exited with code {code}"),
        (None, None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None, None) => "vanished".to_owned(),
    };
    let ran = match exited.ran_ms {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1_000),
    };
    let mut text = format!("worker {} {how} after {ran}{hint}", exited.worker);
    if !exited.log_tail.is_empty() {
        text.push_str(LOG_FOLLOWS);
        text.push('\n');
        text.push_str(&exited.log_tail);
    }
    text
}
