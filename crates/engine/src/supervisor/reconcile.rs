//! Asks, carries out, asks again.

use std::sync::Arc;
use std::time::Duration;

use longshore_fleet::{STABLE_UPTIME_MS, ScalingRules, Step};
use longshore_launch::{Born, LaunchError, Launcher, WorkerExit, WorkerSpec};
use longshore_model::{Millis, Placement, WorkerId};
use longshore_planted::{Bug, planted};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::environment::{limits, mint_worker, spec};
use super::fleet_state::{FleetState, LostWorker};
use super::{EndpointApi, FleetEvent, FleetStatus, SupervisorParts};
use crate::EndpointError;
use crate::gpu_pool::GpuWaiter;

/// The least time between two looks that only the load asked for: a busy endpoint changes it all the time.
const RECONCILE_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// How long to wait after the endpoint could not answer.
const RETRY_IN: Duration = Duration::from_secs(1);
/// How often the outcome of the steps is looked at at once. More would be a plan that contradicts itself.
const PASSES_MAX: u32 = 8;
/// How long to wait at most before looking again for a place: whoever was first in line may not be any more.
const PLACE_RETRY_IN: Duration = Duration::from_secs(30);
/// How long a worker may take to ask for its first job: it may be loading a model.
const FIRST_TAKE_TIMEOUT: Duration = Duration::from_mins(30);
/// The same for an adopted one that was started for another address of this server, which it will most likely never
/// reach.
const MOVED_FIRST_TAKE_TIMEOUT: Duration = Duration::from_mins(1);

/// The endpoint could not answer; ask again later.
struct EndpointUnavailable;

/// The running supervisor.
pub(super) struct Supervisor<P> {
    parts: SupervisorParts<P>,
    roster: FleetState,
    claim: GpuWaiter,
    /// What the queue was not told yet.
    losses: Vec<LostWorker>,
    /// Workers that the launcher is starting, and what came of it.
    starts: JoinSet<(WorkerId, Result<(), LaunchError>)>,
    /// Workers that the launcher is ending.
    stops: JoinSet<WorkerId>,
    /// What stopped jobs left in workers that live on, being ended.
    clearing: JoinSet<()>,
    publish: watch::Sender<FleetStatus>,
    /// Which limits do not hold for the worker that was started last.
    unenforced: Option<String>,
    looked_at: Option<Instant>,
    /// The endpoint has another provider, whose supervisor gets its events: this one looks at intervals.
    is_detached: bool,
}

impl<P: EndpointApi> Supervisor<P> {
    pub(super) fn new(mut parts: SupervisorParts<P>, publish: watch::Sender<FleetStatus>) -> Self {
        let mut roster = FleetState::default();
        if !planted(Bug::AdoptedForgotten) {
            let asks_by =
                Instant::now() + if parts.moved { MOVED_FIRST_TAKE_TIMEOUT } else { FIRST_TAKE_TIMEOUT };
            parts.adopted.drain(..).for_each(|present| roster.add(present, asks_by));
        }
        Self {
            claim: GpuWaiter::new(Arc::clone(&parts.gpu_pool), parts.endpoint_api.record().id),
            parts,
            roster,
            losses: Vec::new(),
            starts: JoinSet::new(),
            stops: JoinSet::new(),
            clearing: JoinSet::new(),
            publish,
            unenforced: None,
            looked_at: None,
            is_detached: false,
        }
    }

    /// Runs until the endpoint is gone with its last worker, or the server stops.
    pub(super) async fn run(mut self, mut events: mpsc::UnboundedReceiver<FleetEvent>) {
        let mut look_at = Some(Instant::now());
        // A deleted endpoint may have nobody left who could send events. Its workers are ended all the same.
        let mut heard = true;
        while !(self.roster.is_closing() && self.roster.is_empty() && self.losses.is_empty()) {
            let soonest = tokio::select! {
                biased;
                event = events.recv(), if heard => match event {
                    Some(FleetEvent::Shutdown) => break,
                    Some(event) => self.handle(event),
                    None if !self.roster.is_closing() => break,
                    None => {
                        heard = false;
                        Instant::now()
                    }
                },
                Some(started) = self.starts.join_next() => {
                    if let Ok((worker, outcome)) = started {
                        self.started(worker, outcome);
                    }
                    Instant::now()
                }
                Some(stopped) = self.stops.join_next() => {
                    if let (Ok(worker), false) = (stopped, heard) {
                        self.roster.forget(&worker);
                    }
                    continue;
                }
                () = self.claim.changed() => Instant::now(),
                () = sleep_until(look_at.unwrap_or_else(Instant::now)), if look_at.is_some() => {
                    look_at = self.reconcile().await;
                    if heard && !self.is_detached {
                        continue;
                    }
                    Instant::now() + RETRY_IN
                }
            };
            look_at = Some(look_at.map_or(soonest, |before| before.min(soonest)));
        }
        if self.roster.is_closing() && self.roster.is_empty() {
            self.forget().await;
        }
        // A worker that begins has to be known to the launcher. What is being ended goes on without us.
        while self.starts.join_next().await.is_some() {}
        self.stops.detach_all();
    }

    /// Removes the logs of the deleted endpoint's workers.
    async fn forget(&self) {
        let endpoint = self.parts.endpoint_api.record().id;
        if let Err(error) = self.parts.launcher.forget(&endpoint).await {
            tracing::warn!(%endpoint, %error, "the logs of a deleted endpoint remain");
        }
    }

    /// Notes what happened; answers when to look at the fleet.
    fn handle(&mut self, event: FleetEvent) -> Instant {
        let soon = Instant::now();
        match event {
            FleetEvent::Demand => {
                return self.looked_at.map_or(soon, |at| soon.max(at + RECONCILE_INTERVAL_MIN));
            }
            FleetEvent::Replace { worker, reason } => self.replace(worker, &reason),
            FleetEvent::LetGo { worker, since, until } => {
                self.clear_up(worker, since, until);
                return soon + RETRY_IN;
            }
            FleetEvent::Refresh { worker } => self.roster.drain(&worker),
            FleetEvent::Exited(exited) => self.exited(&exited),
            FleetEvent::Configured => self.roster.configured(),
            FleetEvent::Deleted { drain } => self.close(drain),
            FleetEvent::ProviderChanged => {
                self.is_detached = true;
                self.close(true);
            }
            FleetEvent::Shutdown => {}
        }
        soon
    }

    fn exited(&mut self, exited: &WorkerExit) {
        let loss = self.roster.exited(self.parts.endpoint_api.now(), exited);
        let WorkerExit { worker, code, signal, ran_ms, .. } = exited;
        if loss.expected {
            tracing::info!(%worker, ?code, ?signal, ran_ms, "a worker was stopped");
        } else {
            // Its reason has the last lines of the worker's own log: what an operator looks for first.
            tracing::warn!(%worker, ?code, ?signal, ran_ms, reason = %loss.reason, "a worker ended by itself");
        }
        self.losses.push(loss);
    }

    fn close(&mut self, drain: bool) {
        self.roster.close();
        if !drain {
            for worker in self.roster.everyone() {
                self.stop(worker, self.stop_grace());
            }
        }
    }

    /// Plans and carries out until there is nothing left to do; answers when to look again.
    async fn reconcile(&mut self) -> Option<Instant> {
        self.looked_at = Some(Instant::now());
        for _ in 0..PASSES_MAX {
            match self.pass().await {
                Ok(PassResult::Acted) => {}
                Ok(PassResult::Rests(after)) => return after.map(|after| Instant::now() + after),
                Err(EndpointUnavailable) => break,
            }
        }
        Some(Instant::now() + RETRY_IN)
    }

    async fn pass(&mut self) -> Result<PassResult, EndpointUnavailable> {
        self.tell().await?;
        let view = self.parts.endpoint_api.fleet_view().await;
        let Some(view) = self.answered(view)? else { return Ok(PassResult::Rests(None)) };
        let now = self.parts.endpoint_api.now();
        let rules = ScalingRules::from(&*self.parts.endpoint_api.record());
        let (plan, mut status) = self.roster.plan(now, rules, &view);
        let given_up_after = self.give_up_on_the_silent();
        let carried_out = self.carry_out(plan.steps);
        if carried_out.throttled == 0 {
            self.claim.leave();
        }
        status.throttled = carried_out.throttled;
        status.throttled_because = carried_out.because;
        self.publish(status);
        if carried_out.acted {
            return Ok(PassResult::Acted);
        }
        let planned = plan.look_at.map(|at| Duration::from_millis(at.since(now)));
        let probation = self.roster.is_on_probation().then_some(Duration::from_millis(STABLE_UPTIME_MS));
        let place = (carried_out.throttled > 0).then_some(PLACE_RETRY_IN);
        Ok(PassResult::Rests([planned, probation, place, given_up_after].into_iter().flatten().min()))
    }

    fn carry_out(&mut self, steps: Vec<Step>) -> StepResults {
        let mut outcome = StepResults::default();
        for step in steps {
            match step {
                // Where one found no place, the next one would find none either.
                Step::Start if outcome.throttled > 0 => outcome.throttled += 1,
                Step::Start => match self.start() {
                    Ok(()) => outcome.acted = true,
                    Err(NotStarted::Throttled(reason)) => {
                        outcome.throttled = 1;
                        outcome.because = Some(reason.into());
                    }
                    Err(NotStarted::Failed(reason)) => {
                        self.not_started(&reason);
                        outcome.acted = true;
                        break;
                    }
                },
                Step::Drain(worker) => {
                    self.roster.drain(&worker);
                    outcome.acted = true;
                }
                Step::Stop(worker) => {
                    self.stop(worker, self.stop_grace());
                    outcome.acted = true;
                }
            }
        }
        outcome
    }

    /// How long a worker that is to go may take to end after SIGTERM.
    fn stop_grace(&self) -> Duration {
        self.parts.settings.stop_grace(Some(&self.parts.endpoint_api.record()))
    }

    fn publish(&self, status: FleetStatus) {
        if let Some(reason) =
            status.throttled_because.as_ref().filter(|_| self.publish.borrow().throttled == 0)
        {
            let endpoint = self.parts.endpoint_api.record().id;
            tracing::warn!(%endpoint, %reason, "no place for a worker");
        }
        self.publish.send_if_modified(|published| {
            let changed = *published != status;
            *published = status;
            changed
        });
    }

    /// Replaces workers that should have asked for a job by now; answers after what time the next one should have.
    fn give_up_on_the_silent(&mut self) -> Option<Duration> {
        let now = Instant::now();
        for worker in self.roster.overdue(now) {
            self.replace(worker, "it never asked this server for a job");
        }
        self.roster.next_overdue().map(|at| at - now)
    }

    /// Ends the processes that a worker began between two moments, in the background, if they are still there after a while.
    fn clear_up(&mut self, worker: WorkerId, since: Millis, until: Millis) {
        while self.clearing.try_join_next().is_some() {}
        if !self.roster.runs(&worker) {
            return;
        }
        // First: what is late in between must not make the span end later.
        let as_of = std::time::Instant::now();
        let now = self.parts.endpoint_api.now();
        let ago = |at: Millis| Duration::from_millis(now.since(at));
        let (launcher, grace) = (Arc::clone(&self.parts.launcher), self.parts.settings.kill_grace());
        let born = Born { since_ago: ago(since), until_ago: ago(until), as_of };
        self.clearing.spawn(async move {
            match launcher.end_leftovers(&worker, born, grace).await {
                Ok(0) => {}
                Ok(ended) => tracing::info!(%worker, ended, "ended processes that a stopped job had left"),
                Err(error) => {
                    tracing::warn!(%worker, %error, "processes that a stopped job left may live on");
                }
            }
        });
    }

    fn replace(&mut self, worker: WorkerId, reason: &str) {
        tracing::warn!(%worker, %reason, "replacing a worker");
        self.roster.replaced(self.parts.endpoint_api.now(), &worker, reason);
        self.stop(worker, self.parts.settings.kill_grace());
    }

    /// Tells the queue what it does not know yet: who is gone, who is ours, who gets no more jobs.
    async fn tell(&mut self) -> Result<(), EndpointUnavailable> {
        while let Some(LostWorker { worker, counts_retry, reason, .. }) = self.losses.first().cloned() {
            let told = self.parts.endpoint_api.lose_worker(worker, counts_retry, reason).await;
            self.answered(told)?;
            self.losses.remove(0);
        }
        for worker in self.roster.unregistered() {
            let told = self.parts.endpoint_api.register_worker(worker.clone()).await;
            self.answered(told)?;
            self.roster.registered(&worker);
        }
        for worker in self.roster.undrained() {
            let told = self.parts.endpoint_api.drain_worker(worker.clone()).await;
            self.answered(told)?;
            self.roster.drained(&worker);
        }
        Ok(())
    }

    /// The answer; none if the endpoint is gone, which ends its workers.
    fn answered<T>(&mut self, answer: Result<T, EndpointError>) -> Result<Option<T>, EndpointUnavailable> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(EndpointError::Deleted) => {
                self.close(false);
                Ok(None)
            }
            Err(_) => Err(EndpointUnavailable),
        }
    }

    /// Starts a worker in the background: that may take long, and the others must not wait for it.
    fn start(&mut self) -> Result<(), NotStarted> {
        let spec = self.next_spec()?;
        self.warn_of_limits(&spec.placement);
        self.roster.starts(&spec, Instant::now() + FIRST_TAKE_TIMEOUT);
        let launcher = Arc::clone(&self.parts.launcher);
        self.starts.spawn(async move { (spec.worker.clone(), launcher.start(spec).await) });
        Ok(())
    }

    /// Says once which limits do not hold, and again when it is others or for another reason.
    fn warn_of_limits(&mut self, placement: &Placement) {
        if let Some(reason) =
            placement.unenforced_limits.as_ref().filter(|_| self.unenforced != placement.unenforced_limits)
        {
            let endpoint = self.parts.endpoint_api.record().id;
            tracing::warn!(%endpoint, %reason, "workers run without limits");
        }
        self.unenforced.clone_from(&placement.unenforced_limits);
    }

    fn next_spec(&self) -> Result<WorkerSpec, NotStarted> {
        let SupervisorParts { endpoint_api: port, template, settings, token, runtime: host, .. } =
            &self.parts;
        let endpoint = port.record();
        let failed = NotStarted::Failed;
        let template =
            template().ok_or_else(|| failed(format!("template {} does not exist", endpoint.template_id)))?;
        let worker =
            mint_worker(host.entropy()).ok_or_else(|| failed("no worker id could be made".into()))?;
        let now = port.now();
        let placed = self.claim.place(now, &endpoint, &worker);
        let gpus = placed.map_err(|shortage| NotStarted::Throttled(shortage.reason().to_owned()))?;
        let unenforced_limits = self.parts.launcher.unenforced(&limits(&endpoint));
        let placement = Placement { started_at: now, gpus, unenforced_limits };
        spec(&endpoint, &template, settings, token, worker.clone(), placement).map_err(|reason| {
            self.claim.free(&worker);
            failed(reason)
        })
    }

    /// A start came to its end.
    fn started(&mut self, worker: WorkerId, outcome: Result<(), LaunchError>) {
        match outcome {
            Ok(()) => {
                let endpoint = self.parts.endpoint_api.record().id;
                tracing::info!(%worker, %endpoint, "started a worker");
                if self.roster.started(&worker) {
                    self.end(worker, self.stop_grace());
                }
            }
            Err(error) => {
                self.roster.forget(&worker);
                self.claim.free(&worker);
                self.not_started(&error.to_string());
            }
        }
    }

    fn not_started(&mut self, reason: &str) {
        let endpoint = self.parts.endpoint_api.record().id;
        tracing::warn!(%endpoint, %reason, "a worker could not be started");
        self.roster.not_started(self.parts.endpoint_api.now(), reason);
    }

    /// Ends a worker; one that is being started, as soon as it runs.
    fn stop(&mut self, worker: WorkerId, grace: Duration) {
        if self.roster.stop(&worker) {
            self.end(worker, grace);
        }
    }

    /// Ends a worker that runs, in the background; its exit arrives as an event like any other.
    fn end(&mut self, worker: WorkerId, grace: Duration) {
        let launcher = Arc::clone(&self.parts.launcher);
        self.stops.spawn(async move {
            stop(&*launcher, &worker, grace).await;
            worker
        });
    }
}

/// Why a worker was not started.
enum NotStarted {
    /// There is no place for it.
    Throttled(String),
    /// It could not be.
    Failed(String),
}

/// What came of the steps of a plan.
#[derive(Default)]
struct StepResults {
    /// Something was done: plan again.
    acted: bool,
    /// So many workers found no place.
    throttled: u32,
    because: Option<Arc<str>>,
}

/// What came of a round.
enum PassResult {
    /// Steps were taken: plan again.
    Acted,
    /// Nothing to do before this time has passed.
    Rests(Option<Duration>),
}

/// Ends a worker.
pub(super) async fn stop(launcher: &dyn Launcher, worker: &WorkerId, grace: Duration) {
    if let Err(error) = launcher.stop(worker, grace).await {
        tracing::error!(%worker, %error, "a worker could not be stopped");
    }
}
