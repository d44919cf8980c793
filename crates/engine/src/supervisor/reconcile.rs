//! The task of a supervisor: observes the fleet, plans, takes the steps, and repeats.

use std::sync::Arc;
use std::time::Duration;

use longshore_fleet::{STABLE_UPTIME_MS, ScalingRules, Step};
use longshore_launch::{Born, LaunchError, Launcher, WorkerExit, WorkerSpec};
use longshore_model::{Millis, Placement, Served, StopReason, WorkerId};
use longshore_planted::{Bug, planted};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::environment::{ServerAccess, limits, mint_worker, spec, with_login};
use super::fleet_state::{EndedStart, FleetState, LostWorker, without_log};
use super::http_ports::http_ports;
use super::start_patience::StartPatience;
use super::{EndpointApi, FleetEvent, FleetStatus, SupervisorParts};
use crate::balancer::address::WorkerAddress;
use crate::gpu_pool::GpuWaiter;
use crate::{EndpointError, ExitKind};

/// Shortest time between two passes that only a change of the load causes: a busy endpoint changes it with each job.
const RECONCILE_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// Pause after the endpoint was unavailable.
const RETRY_IN: Duration = Duration::from_secs(1);
/// Limit of consecutive passes without a pause. A plan that still has steps then contradicts itself.
const PASSES_MAX: u32 = 8;
/// Interval of placement retries while a worker is throttled: a reservation for another endpoint may have expired,
/// which wakes no waiter.
const PLACEMENT_RETRY_IN: Duration = Duration::from_secs(30);

/// The endpoint is unavailable, or another node may own it; the pass is retried later.
struct EndpointUnavailable;

/// The state of a supervisor's task.
pub(super) struct Supervisor<P> {
    parts: SupervisorParts<P>,
    fleet: FleetState,
    gpu_waiter: GpuWaiter,
    /// Exited workers that the queue does not know of yet.
    losses: Vec<LostWorker>,
    /// Starts in progress, each with its result; `None` if it did not begin, because another node may own the endpoint.
    starts: JoinSet<(WorkerId, Option<Result<(), LaunchError>>)>,
    /// Stops in progress.
    stops: JoinSet<WorkerId>,
    /// Leftover processes of stopped jobs being ended.
    cleanups: JoinSet<()>,
    publish: watch::Sender<FleetStatus>,
    /// The limits that are not enforced for the worker that was started last, as text.
    unenforced: Option<String>,
    /// When the last passes began; `None` before the first.
    reconciled_at: Option<Instant>,
    /// The endpoint has another provider. Its supervisor gets the events; this one reconciles at intervals.
    is_detached: bool,
}

impl<P: EndpointApi> Supervisor<P> {
    /// Returns a supervisor that has adopted the workers in `parts`.
    pub(super) fn new(mut parts: SupervisorParts<P>, publish: watch::Sender<FleetStatus>) -> Self {
        let mut fleet = FleetState::default();
        parts.endpoint_api.admitted().adopt(parts.adopted.iter().map(|present| present.worker.clone()));
        if !planted(Bug::AdoptedForgotten) {
            let endpoint = parts.endpoint_api.record();
            for present in std::mem::take(&mut parts.adopted) {
                parts.endpoint_api.note_start(present.placement.started_at);
                let patience = StartPatience::of_adoption(&endpoint, parts.has_moved(&present));
                fleet.add(present, patience);
            }
        }
        // A drain waits for these workers before the first pass, too.
        publish.send_modify(|status| status.workers = fleet.statuses());
        let endpoint = parts.endpoint_api.record();
        let gpu_waiter = GpuWaiter::new(Arc::clone(&parts.gpu_pool), endpoint.id);
        for worker in fleet.ids() {
            gpu_waiter.hold_room(&worker, &limits(&endpoint));
        }
        Self {
            gpu_waiter,
            parts,
            fleet,
            losses: Vec::new(),
            starts: JoinSet::new(),
            stops: JoinSet::new(),
            cleanups: JoinSet::new(),
            publish,
            unenforced: None,
            reconciled_at: None,
            is_detached: false,
        }
    }

    /// Runs until the endpoint is deleted and its last worker has exited, or the server stops.
    pub(super) async fn run(mut self, mut events: mpsc::UnboundedReceiver<FleetEvent>) {
        let mut next_pass = Some(Instant::now());
        // The senders of a deleted endpoint may all be dropped; its workers are stopped all the same.
        let mut has_senders = true;
        while !(self.fleet.closing().is_some() && self.fleet.is_empty() && self.losses.is_empty()) {
            let soonest = tokio::select! {
                biased;
                event = events.recv(), if has_senders => match event {
                    Some(FleetEvent::Shutdown) => break,
                    Some(event) => self.handle(event),
                    None if self.fleet.closing().is_none() => break,
                    None => {
                        has_senders = false;
                        Instant::now()
                    }
                },
                Some(started) = self.starts.join_next() => {
                    if let Ok((worker, result)) = started {
                        self.started(worker, result);
                    }
                    Instant::now()
                }
                Some(stopped) = self.stops.join_next() => {
                    // Without events the exit is not reported.
                    if let (Ok(worker), false) = (stopped, has_senders) {
                        self.fleet.remove(&worker);
                    }
                    continue;
                }
                () = self.gpu_waiter.changed() => Instant::now(),
                () = sleep_until(next_pass.unwrap_or_else(Instant::now)), if next_pass.is_some() => {
                    next_pass = self.reconcile().await;
                    if has_senders && !self.is_detached {
                        continue;
                    }
                    Instant::now() + RETRY_IN
                }
            };
            next_pass = Some(next_pass.map_or(soonest, |before| before.min(soonest)));
        }
        if self.fleet.closing().is_some() && self.fleet.is_empty() {
            self.remove_logs().await;
        }
        // The launcher must know every worker that it starts. Stops go on without this task.
        while self.starts.join_next().await.is_some() {}
        self.stops.detach_all();
    }

    /// Removes the logs of the deleted endpoint's workers.
    async fn remove_logs(&self) {
        let endpoint = self.parts.endpoint_api.record().id;
        if let Err(error) = self.parts.launcher.forget(&endpoint).await {
            tracing::warn!(%endpoint, %error, "worker logs of deleted endpoint not removed");
        }
    }

    /// Handles an event. Returns when the next pass is due.
    fn handle(&mut self, event: FleetEvent) -> Instant {
        let now = Instant::now();
        match event {
            FleetEvent::Demand => {
                return self.reconciled_at.map_or(now, |at| now.max(at + RECONCILE_INTERVAL_MIN));
            }
            FleetEvent::Replace { worker, reason } => self.replace(worker, &reason),
            FleetEvent::LetGo { worker, since, until } => {
                self.end_leftovers(worker, since, until);
                return now + RETRY_IN;
            }
            FleetEvent::Drain { worker, reason } => self.fleet.drain(&worker, reason),
            FleetEvent::Stop { worker } => self.stop(worker, self.stop_grace(), StopReason::Operator),
            FleetEvent::Stage { worker, stage } => {
                self.fleet.set_stage(&worker, stage);
                return self.reconciled_at.map_or(now, |at| now.max(at + RECONCILE_INTERVAL_MIN));
            }
            FleetEvent::Away { worker, machine } => {
                let endpoint = self.parts.endpoint_api.record().id;
                tracing::warn!(%endpoint, %worker, %machine, "a worker's machine does not answer");
                self.fleet.set_away(&worker, true);
            }
            FleetEvent::Back { worker } => {
                let endpoint = self.parts.endpoint_api.record().id;
                tracing::info!(%endpoint, %worker, "a worker's machine answers again");
                self.fleet.set_away(&worker, false);
            }
            FleetEvent::Exited(exited) => self.exited(&exited),
            FleetEvent::Configured | FleetEvent::TryNow => self.fleet.reset_backoff(),
            FleetEvent::Deleted { drain } => self.close(drain, &StopReason::EndpointDeleted),
            FleetEvent::ProviderChanged => {
                self.is_detached = true;
                self.close(true, &StopReason::ProviderChanged);
            }
            FleetEvent::Shutdown => {}
        }
        now
    }

    /// Handles the exit of a worker; the next pass tells the queue.
    fn exited(&mut self, exited: &WorkerExit) {
        self.parts.endpoint_api.admitted().remove(&exited.worker);
        let lost = self.fleet.record_exit(self.parts.endpoint_api.now(), exited);
        self.parts.endpoint_api.counts().ended(match (lost.is_expected, lost.is_crash) {
            (true, _) => ExitKind::Stopped,
            (false, true) => ExitKind::Crashed,
            (false, false) => ExitKind::Finished,
        });
        let WorkerExit { worker, code, signal, ran_ms, .. } = exited;
        let endpoint = self.parts.endpoint_api.record().id;
        if lost.is_expected {
            tracing::info!(%endpoint, %worker, code, signal, ran_ms, "worker stopped");
        } else {
            let reason = without_log(&lost.reason);
            tracing::warn!(%endpoint, %worker, code, signal, ran_ms, reason, "worker exited");
        }
        self.losses.push(lost);
    }

    /// Closes the fleet. Without `drain`, every worker is stopped now.
    fn close(&mut self, drain: bool, reason: &StopReason) {
        self.fleet.close(reason.clone());
        if !drain {
            for worker in self.fleet.ids() {
                self.stop(worker, self.stop_grace(), reason.clone());
            }
        }
    }

    /// Makes passes until a plan has no step. Returns when the next pass is due; `None`: after the next event.
    async fn reconcile(&mut self) -> Option<Instant> {
        self.reconciled_at = Some(Instant::now());
        for _ in 0..PASSES_MAX {
            match self.pass().await {
                Ok(PassResult::Acted) => {}
                Ok(PassResult::Idle(after)) => return after.map(|after| Instant::now() + after),
                Err(EndpointUnavailable) => break,
            }
        }
        Some(Instant::now() + RETRY_IN)
    }

    /// Makes one pass: reports changes to the queue, observes, plans, and takes the steps.
    async fn pass(&mut self) -> Result<PassResult, EndpointUnavailable> {
        self.report_changes().await?;
        let view = self.parts.endpoint_api.fleet_view().await;
        let Some(view) = self.reply(view)? else { return Ok(PassResult::Idle(None)) };
        // What is due is done after the lease of this node begins again, or by the node that has taken over.
        if !self.parts.runtime.may_act() {
            return Err(EndpointUnavailable);
        }
        let now = self.parts.endpoint_api.now();
        let rules = self.scaling_rules();
        let (plan, mut status) = self.fleet.plan(now, rules, &view);
        for EndedStart { worker, placement, ready_at } in self.fleet.take_starts() {
            let endpoint = &self.parts.endpoint_api;
            endpoint.count_start(ready_at.since(placement.started_at));
            endpoint.trace_start(&worker, &placement, ready_at);
        }
        let next_late_in = self.replace_overdue();
        let results = self.take_steps(plan.steps);
        if results.throttled == 0 {
            self.gpu_waiter.leave();
        }
        self.fleet.set_throttled(now, results.throttled > 0);
        status.throttled = results.throttled;
        status.throttled_because = results.because;
        status.facts = Arc::new(self.fleet.facts());
        self.publish(status);
        if results.acted {
            return Ok(PassResult::Acted);
        }
        let planned = plan.look_at.map(|at| Duration::from_millis(at.since(now)));
        let probation = self.fleet.is_on_probation().then_some(Duration::from_millis(STABLE_UPTIME_MS));
        let placement = (results.throttled > 0).then_some(PLACEMENT_RETRY_IN);
        Ok(PassResult::Idle([planned, probation, placement, next_late_in].into_iter().flatten().min()))
    }

    /// Returns the rules of the next plan: those of the endpoint, without any worker while the server drains.
    fn scaling_rules(&self) -> ScalingRules {
        let rules = ScalingRules::from(&*self.parts.endpoint_api.record());
        if self.parts.endpoint_api.is_server_draining() {
            ScalingRules { workers_max: 0, ..rules }
        } else {
            rules
        }
    }

    /// Takes the steps of a plan, up to the first start that fails.
    fn take_steps(&mut self, steps: Vec<Step>) -> StepResults {
        let mut results = StepResults::default();
        for step in steps {
            match step {
                // After one start without GPUs or room, the next one would get none either.
                Step::Start if results.throttled > 0 => results.throttled += 1,
                Step::Start => match self.start() {
                    Ok(()) => results.acted = true,
                    Err(NotStarted::Throttled(reason)) => {
                        results.throttled = 1;
                        results.because = Some(reason.into());
                    }
                    Err(NotStarted::Failed(reason)) => {
                        self.not_started(None, &reason);
                        results.acted = true;
                        break;
                    }
                },
                Step::Drain(worker, reason) => {
                    let reason = self.why_drained(reason);
                    self.fleet.drain(&worker, reason);
                    results.acted = true;
                }
                Step::Stop(worker) => {
                    // The worker keeps the reason of its drain.
                    self.stop(worker, self.stop_grace(), StopReason::Idle);
                    results.acted = true;
                }
            }
        }
        results
    }

    /// Returns the reason of a planned drain. The plan of a fleet that is closed, and of a server that is being drained,
    /// has a `workersMax` of 0.
    fn why_drained(&self, planned: StopReason) -> StopReason {
        match planned {
            StopReason::WorkersMax if self.parts.endpoint_api.is_server_draining() => {
                StopReason::ServerDraining
            }
            StopReason::WorkersMax => self.fleet.closing().cloned().unwrap_or(StopReason::WorkersMax),
            reason => reason,
        }
    }

    /// Returns the time from SIGTERM to SIGKILL for a drained worker.
    fn stop_grace(&self) -> Duration {
        self.parts.settings.stop_grace(Some(&self.parts.endpoint_api.record()))
    }

    /// Publishes the status, and logs when workers begin to be throttled.
    fn publish(&self, status: FleetStatus) {
        if let Some(reason) =
            status.throttled_because.as_ref().filter(|_| self.publish.borrow().throttled == 0)
        {
            let endpoint = self.parts.endpoint_api.record().id;
            tracing::warn!(%endpoint, %reason, "worker throttled");
        }
        self.publish.send_if_modified(|published| {
            let changed = *published != status;
            *published = status;
            changed
        });
    }

    /// Replaces the workers whose first take is overdue. Returns after what time the next one is late or overdue.
    fn replace_overdue(&mut self) -> Option<Duration> {
        let now = Instant::now();
        for (worker, reason) in self.fleet.overdue(now) {
            self.replace(worker, &reason);
        }
        self.fleet.next_late(now).map(|at| at - now)
    }

    /// Ends, in the background, the processes that a worker started between two moments and that still run after the
    /// kill grace. A worker that is being stopped needs none of this: all its processes end with it.
    fn end_leftovers(&mut self, worker: WorkerId, since: Millis, until: Millis) {
        while self.cleanups.try_join_next().is_some() {}
        if !self.fleet.runs(&worker) {
            return;
        }
        // Read before `now`: a delay between the two must not move the end of the span.
        let as_of = std::time::Instant::now();
        let now = self.parts.endpoint_api.now();
        let ago = |at: Millis| Duration::from_millis(now.since(at));
        let (launcher, grace) = (Arc::clone(&self.parts.launcher), self.parts.settings.kill_grace());
        let born = Born { since_ago: ago(since), until_ago: ago(until), as_of };
        let endpoint = self.parts.endpoint_api.record().id;
        self.cleanups.spawn(async move {
            match launcher.end_leftovers(&worker, born, grace).await {
                Ok(0) => {}
                Ok(ended) => {
                    tracing::info!(%endpoint, %worker, ended, "leftover processes of stopped job ended");
                }
                Err(error) => {
                    tracing::warn!(%endpoint, %worker, %error, "leftover processes may still run");
                }
            }
        });
    }

    /// Stores what a worker did until its end.
    async fn note_served(&self, worker: &WorkerId, served: Served) {
        let endpoint = self.parts.endpoint_api.record().id;
        if let Err(error) = self.parts.launcher.note_served(&endpoint, worker, served).await {
            tracing::warn!(%endpoint, %worker, %error, "end of worker not noted");
        }
    }

    /// Stops a worker; the next pass starts another one if the load needs it.
    fn replace(&mut self, worker: WorkerId, reason: &str) {
        let endpoint = self.parts.endpoint_api.record().id;
        tracing::warn!(%endpoint, %worker, %reason, "replacing worker");
        self.fleet.record_replacement(self.parts.endpoint_api.now(), &worker, reason);
        self.stop(worker, self.parts.settings.kill_grace(), StopReason::Replaced(reason.to_owned()));
    }

    /// Tells the queue which workers exited, which are managed, and which are drained, as far as it does not know.
    async fn report_changes(&mut self) -> Result<(), EndpointUnavailable> {
        while let Some(lost) = self.losses.first().cloned() {
            let LostWorker { worker, counts_retry, reason, served, .. } = lost;
            let reply = self.parts.endpoint_api.lose_worker(worker.clone(), counts_retry, reason).await;
            self.reply(reply)?;
            self.losses.remove(0);
            if let Some(served) = served {
                self.note_served(&worker, served).await;
            }
        }
        for worker in self.fleet.unregistered() {
            let address = self.address_of(&worker).await;
            let reply = self.parts.endpoint_api.register_worker(worker.clone(), address).await;
            self.reply(reply)?;
            self.fleet.set_registered(&worker);
        }
        for worker in self.fleet.undrained() {
            let reply = self.parts.endpoint_api.drain_worker(worker.clone()).await;
            self.reply(reply)?;
            self.fleet.set_drained(&worker);
        }
        Ok(())
    }

    /// Returns where a worker that serves HTTP is reached; `None` for a worker that takes jobs, and if the launcher does not
    /// know.
    async fn address_of(&self, worker: &WorkerId) -> Option<WorkerAddress> {
        let ports = self.fleet.http_ports(worker)?;
        match self.parts.launcher.host_of(worker).await {
            Ok(host) => Some(WorkerAddress::new(host?, ports)),
            Err(error) => {
                let endpoint = self.parts.endpoint_api.record().id;
                tracing::warn!(%endpoint, %worker, %error, "address of worker unknown");
                None
            }
        }
    }

    /// Returns the value of a reply; `None` if the endpoint is deleted, which stops its workers.
    fn reply<T>(&mut self, reply: Result<T, EndpointError>) -> Result<Option<T>, EndpointUnavailable> {
        match reply {
            Ok(value) => Ok(Some(value)),
            Err(EndpointError::Deleted) => {
                self.close(false, &StopReason::EndpointDeleted);
                Ok(None)
            }
            Err(_) => Err(EndpointUnavailable),
        }
    }

    /// Starts a worker in the background: a start may take long, and the other workers do not wait for it.
    fn start(&mut self) -> Result<(), NotStarted> {
        let spec = self.next_spec()?;
        self.parts.endpoint_api.admitted().add(spec.worker.clone());
        self.parts.endpoint_api.note_start(spec.placement.started_at);
        if let Some(cause) = spec.placement.cause {
            self.parts.endpoint_api.counts().starting(cause);
        }
        self.warn_of_limits(&spec.placement);
        let patience = StartPatience::of_start(&self.parts.endpoint_api.record());
        self.fleet.add_starting(&spec, patience);
        let (launcher, runtime) = (Arc::clone(&self.parts.launcher), Arc::clone(&self.parts.runtime));
        self.starts.spawn(async move {
            let worker = spec.worker.clone();
            // The process may have been suspended since the pass, until after the lease of this node.
            let started = if runtime.may_act() { Some(launcher.start(spec).await) } else { None };
            (worker, started)
        });
        Ok(())
    }

    /// Logs which limits are not enforced: for the first worker, and when the text changes.
    fn warn_of_limits(&mut self, placement: &Placement) {
        if let Some(reason) =
            placement.unenforced_limits.as_ref().filter(|_| self.unenforced != placement.unenforced_limits)
        {
            let endpoint = self.parts.endpoint_api.record().id;
            tracing::warn!(%endpoint, %reason, "worker limits not enforced");
        }
        self.unenforced.clone_from(&placement.unenforced_limits);
    }

    /// Places the next worker and returns its spec. A worker without a valid spec holds no GPU and no room.
    fn next_spec(&self) -> Result<WorkerSpec, NotStarted> {
        let SupervisorParts { endpoint_api, template, secret, login, settings, token, runtime, .. } =
            &self.parts;
        let endpoint = endpoint_api.record();
        let failed = NotStarted::Failed;
        let template =
            template().ok_or_else(|| failed(format!("template {} does not exist", endpoint.template_id)))?;
        let worker =
            mint_worker(runtime.entropy()).ok_or_else(|| failed("cannot make a worker id".into()))?;
        let server = ServerAccess { url: self.parts.server_url(), token: &token(&worker), settings };
        let now = endpoint_api.now();
        let gpus = self.gpu_waiter.place(now, &endpoint, &worker).map_err(NotStarted::Throttled)?;
        let unenforced_limits = self.parts.launcher.unenforced(&limits(&endpoint));
        let cause = self.fleet.start_cause();
        let http = http_ports(&endpoint, &template, &*self.parts.launcher, || runtime.entropy());
        let http = http.map_err(|reason| {
            self.gpu_waiter.free(&worker);
            failed(reason)
        })?;
        let placement = Placement { started_at: now, gpus, unenforced_limits, cause, http };
        let made = spec(&endpoint, &template, &**secret, &server, worker.clone(), placement);
        made.and_then(|spec| with_login(spec, &template, &**login)).map_err(|reason| {
            self.gpu_waiter.free(&worker);
            failed(reason)
        })
    }

    /// Handles the end of a start.
    fn started(&mut self, worker: WorkerId, result: Option<Result<(), LaunchError>>) {
        match result {
            Some(Ok(())) => {
                let endpoint = self.parts.endpoint_api.record().id;
                tracing::info!(%worker, %endpoint, "worker started");
                if let Some(reason) = self.fleet.set_started(&worker) {
                    self.stop_running(worker, self.stop_grace(), reason);
                }
            }
            not_started => {
                self.parts.endpoint_api.admitted().remove(&worker);
                let is_cancelled = self.fleet.remove_unstarted(&worker);
                self.gpu_waiter.free(&worker);
                match not_started {
                    Some(Err(error)) if !is_cancelled => self.not_started(Some(&worker), &error.to_string()),
                    _ => tracing::info!(%worker, "worker start cancelled"),
                }
            }
        }
    }

    /// Handles a start that failed.
    fn not_started(&mut self, worker: Option<&WorkerId>, reason: &str) {
        let endpoint = self.parts.endpoint_api.record().id;
        tracing::warn!(%endpoint, %reason, "worker start failed");
        self.parts.endpoint_api.counts().ended(ExitKind::NotStarted);
        self.fleet.record_failed_start(self.parts.endpoint_api.now(), worker, reason);
    }

    /// Stops a worker, or cancels its start.
    fn stop(&mut self, worker: WorkerId, grace: Duration, reason: StopReason) {
        if let Some(reason) = self.fleet.stop(&worker, reason) {
            self.stop_running(worker, grace, reason);
        }
    }

    /// Stops a worker in the background; its exit, or the end of its start, arrives as an event.
    fn stop_running(&mut self, worker: WorkerId, grace: Duration, reason: StopReason) {
        let launcher = Arc::clone(&self.parts.launcher);
        self.stops.spawn(async move {
            stop(&*launcher, &worker, grace, &reason).await;
            worker
        });
    }
}

/// Why a worker was not started.
enum NotStarted {
    /// No GPUs or no room are free for the worker, for the reason given.
    Throttled(String),
    /// The worker has no valid spec, for the reason given. Counts as a crash.
    Failed(String),
}

/// The results of the steps of a plan.
#[derive(Default)]
struct StepResults {
    /// A step changed the fleet: plan again.
    acted: bool,
    /// The number of workers that were not started because no GPUs or no room are free.
    throttled: u32,
    /// What is missing; `None` if no worker is throttled.
    because: Option<Arc<str>>,
}

/// The result of one pass.
enum PassResult {
    /// A step changed the fleet: plan again.
    Acted,
    /// No step is due before this time has passed; `None`: before the next event.
    Idle(Option<Duration>),
}

/// Stops a worker and waits for its exit. A failure is logged.
pub(crate) async fn stop(launcher: &dyn Launcher, worker: &WorkerId, grace: Duration, reason: &StopReason) {
    if let Err(error) = launcher.stop(worker, grace, reason).await {
        tracing::error!(%worker, %error, "worker stop failed");
    }
}
