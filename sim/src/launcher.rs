//! The computer on which the server's workers run, and the launcher by which a server controls them.
//!
//! As with [`longshore_launch::ProcessLauncher`], workers and their records belong to the computer: a killed server
//! leaves them unchanged, and the next server finds them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_launch::{
    InstallationId, LaunchError, LaunchEvent, LaunchFuture, Launcher, RunningWorker, Starts, WorkerExit,
    WorkerSpec,
};
use longshore_model::{StopReason, WorkerId};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use crate::faults::Fault;
use crate::rng::Rng;
use crate::scheduler::Process;
use crate::workers::{ForeignJobs, Worker};
use crate::world::World;

/// Stop grace of a worker that the previous server was already stopping.
const GRACE_LEFT: Duration = Duration::from_secs(3);
/// The name of the computer.
const MACHINE: &str = "sim";
/// Longest time of a start on a fast computer, in ms.
const START_MS_MAX: u64 = 50;
/// Longest time of a start on a slow computer, in ms.
const START_SLOW_MS_MAX: u64 = 20_000;

/// The computer, which lives as long as the world. Cheap to clone.
#[derive(Clone)]
pub struct WorkerMachine {
    shared: Arc<LauncherShared>,
}

struct LauncherShared {
    world: World,
    /// The process of tasks that continue without a server.
    process: Process,
    foreign_jobs: ForeignJobs,
    /// Probability of a slow start.
    slowness: f64,
    /// The longest time of a slow start, in ms.
    slow_start_ms_max: u64,
    /// Whether the computer is cut off from servers.
    away: watch::Sender<bool>,
    state: Mutex<LauncherState>,
}

struct LauncherState {
    rng: Rng,
    /// Started workers whose end no server has handled.
    entries: BTreeMap<WorkerId, WorkerEntry>,
    /// Number of adoptions. A start that an earlier server requested is dropped.
    adoptions: u64,
}

/// The record of a worker.
#[derive(Clone)]
struct WorkerEntry {
    present: RunningWorker,
    worker: Worker,
    since: Instant,
    ran: Option<Duration>,
}

impl WorkerMachine {
    /// Creates a computer without workers.
    pub fn new(world: &World, rng: &mut Rng) -> Self {
        let slowness = if rng.chance(0.5) { rng.range(0..=100) as f64 / 200.0 } else { 0.0 };
        Self::with_slow_starts(world, rng, slowness, START_SLOW_MS_MAX)
    }

    /// Creates a computer without workers, where a start is slow with this probability and takes up to `slow_start_ms_max`.
    fn with_slow_starts(world: &World, rng: &mut Rng, slowness: f64, slow_start_ms_max: u64) -> Self {
        let shared = LauncherShared {
            world: world.clone(),
            process: world.tasks.process(),
            foreign_jobs: ForeignJobs::default(),
            slowness,
            slow_start_ms_max,
            away: watch::Sender::new(false),
            state: Mutex::new(LauncherState { rng: rng.fork(), entries: BTreeMap::new(), adoptions: 0 }),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the launcher of the server in this process.
    pub fn launcher(&self, server: &Process) -> SimLauncher {
        let (sender, events) = mpsc::unbounded_channel();
        let (machine, server, starts) = (self.clone(), server.clone(), Starts::default());
        SimLauncher {
            attachment: ServerAttachment { machine, server, starts, adoption: Arc::default(), sender },
            events: Mutex::new(Some(events)),
        }
    }

    /// Starts a worker, or fails, independent of whether the requesting server still runs.
    async fn start(
        &self,
        spec: WorkerSpec,
        adoptions: u64,
        fails: bool,
        takes: Duration,
    ) -> Result<Worker, LaunchError> {
        sleep(takes).await;
        let failed = |reason: &str| LaunchError(format!("worker {} was not started: {reason}", spec.worker));
        if fails {
            return Err(failed("the machine is out of processes"));
        }
        let LauncherShared { world, foreign_jobs, .. } = &*self.shared;
        let mut state = self.state();
        if state.adoptions != adoptions {
            return Err(failed("another server removed its record"));
        }
        let worker = Worker::start(world, &mut state.rng, foreign_jobs, spec.endpoint.as_str(), &spec.env)
            .ok_or_else(|| failed("its environment lacks an address"))?;
        let present = RunningWorker {
            worker: spec.worker.clone(),
            endpoint: spec.endpoint,
            version: spec.version,
            is_stopping: false,
            placement: spec.placement.clone(),
            server_url: Some(spec.server_url.clone()),
        };
        let entry = WorkerEntry { present, worker: worker.clone(), since: Instant::now(), ran: None };
        state.entries.insert(spec.worker.clone(), entry);
        drop(state);
        let (machine, ending, id) = (self.clone(), worker.clone(), spec.worker.clone());
        self.shared.process.spawn(async move {
            ending.ended().await;
            if let Some(entry) = machine.state().entries.get_mut(&id) {
                entry.ran = Some(entry.since.elapsed());
            }
        });
        Ok(worker)
    }

    fn state(&self) -> MutexGuard<'_, LauncherState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The launcher of one server.
pub struct SimLauncher {
    attachment: ServerAttachment,
    events: Mutex<Option<mpsc::UnboundedReceiver<LaunchEvent>>>,
}

/// A server on the computer. Cheap to clone.
#[derive(Clone)]
struct ServerAttachment {
    machine: WorkerMachine,
    server: Process,
    starts: Starts,
    /// Which adoption this server's was. A later server's ends its control of workers.
    adoption: Arc<AtomicU64>,
    sender: mpsc::UnboundedSender<LaunchEvent>,
}

impl ServerAttachment {
    /// Returns when the computer answers.
    async fn present(&self) {
        // The sender is in `self`, so there is no error.
        let _ = self.machine.shared.away.subscribe().wait_for(|is_away| !is_away).await;
    }

    fn check_present(&self, what: &str) -> Result<(), LaunchError> {
        if *self.machine.shared.away.borrow() {
            return Err(LaunchError(format!("{what}: the machine {MACHINE} is away")));
        }
        Ok(())
    }

    fn adopt(&self) -> Result<Vec<RunningWorker>, LaunchError> {
        self.check_present("no worker was adopted")?;
        let entries: Vec<WorkerEntry> = {
            let mut state = self.machine.state();
            state.adoptions += 1;
            self.adoption.store(state.adoptions, Ordering::Relaxed);
            state.entries.values().cloned().collect()
        };
        let mut present = Vec::new();
        for entry in entries {
            let id = entry.present.worker.clone();
            if entry.worker.ending().is_some() {
                self.handle_end(&id);
                continue;
            }
            self.watch(id.clone(), entry.worker);
            if entry.present.is_stopping {
                let attachment = self.clone();
                self.server.spawn(async move { attachment.stop(&id, GRACE_LEFT).await });
            }
            present.push(entry.present);
        }
        Ok(present)
    }

    async fn start(&self, spec: WorkerSpec) -> Result<(), LaunchError> {
        let id = spec.worker.clone();
        self.check_present("the worker was not started")?;
        // A stop waits for the end of the start.
        let _start = self.starts.begin(&id);
        let shared = &self.machine.shared;
        let fails = shared.world.faults.inject(Fault::LaunchFailed);
        let calm = shared.world.faults.are_over();
        let (adoptions, takes) = {
            let mut state = self.machine.state();
            let slow = !calm && state.rng.chance(shared.slowness) || shared.slowness >= 1.0;
            let takes = state.rng.skewed(0..=if slow { shared.slow_start_ms_max } else { START_MS_MAX });
            (self.adoption.load(Ordering::Relaxed), Duration::from_millis(takes))
        };
        let (reply, started) = oneshot::channel();
        let machine = self.machine.clone();
        shared.process.spawn(async move {
            let worker = machine.start(spec, adoptions, fails, takes).await;
            // The server may have died, so a closed channel is no error.
            let _ = reply.send(worker);
        });
        let worker = started.await.map_err(|_| LaunchError("the machine is gone".to_owned()))??;
        self.watch(id, worker);
        Ok(())
    }

    /// Whether no later server has adopted the workers. An earlier one controls workers of its own computer only, which the later
    /// one does not have; here, all workers are on one.
    fn is_latest(&self, state: &LauncherState) -> bool {
        state.adoptions == self.adoption.load(Ordering::Relaxed)
    }

    async fn stop(&self, id: &WorkerId, grace: Duration) {
        self.present().await;
        self.starts.cancel(id).await;
        let worker = {
            let mut state = self.machine.state();
            if !self.is_latest(&state) {
                return;
            }
            let Some(entry) = state.entries.get_mut(id) else { return };
            // Noted first, so that the next server continues the stop.
            entry.present.is_stopping = true;
            entry.worker.clone()
        };
        worker.terminate();
        if timeout(grace, worker.ended()).await.is_err() {
            worker.kill();
        }
        worker.ended().await;
        self.handle_end(id);
    }

    fn watch(&self, id: WorkerId, worker: Worker) {
        let attachment = self.clone();
        self.server.spawn(async move {
            worker.ended().await;
            attachment.present().await;
            attachment.handle_end(&id);
        });
    }

    /// Reports the end of a worker once.
    fn handle_end(&self, id: &WorkerId) {
        let mut state = self.machine.state();
        let is_latest = self.is_latest(&state);
        let Some(entry) = is_latest.then(|| state.entries.remove(id)).flatten() else { return };
        drop(state);
        let ending = entry.worker.ending();
        let RunningWorker { worker, endpoint, is_stopping, placement, .. } = entry.present;
        let exited = WorkerExit {
            stage: None,
            log_tail: format!("the last words of {worker}"),
            worker,
            endpoint,
            code: ending.and_then(|ending| ending.code),
            signal: ending.and_then(|ending| ending.signal),
            ran_ms: entry.ran.unwrap_or_else(|| entry.since.elapsed()).as_millis() as u64,
            because: None,
            expected: is_stopping,
            placement,
        };
        // A dropped receiver is no error.
        let _ = self.sender.send(LaunchEvent::Exited(exited));
    }
}

impl Launcher for SimLauncher {
    fn adopt(&self, _installation: InstallationId) -> LaunchFuture<'_, Vec<RunningWorker>> {
        Box::pin(async { self.attachment.adopt() })
    }

    fn start(&self, spec: WorkerSpec) -> LaunchFuture<'_, ()> {
        Box::pin(self.attachment.start(spec))
    }

    fn stop(&self, worker: &WorkerId, grace: Duration, _reason: &StopReason) -> LaunchFuture<'_, ()> {
        let (attachment, worker) = (self.attachment.clone(), worker.clone());
        Box::pin(async move {
            // The task ends with the server's process, not with its caller.
            let stop = self.attachment.server.spawn(async move { attachment.stop(&worker, grace).await });
            stop.await.map_err(|_| LaunchError("the server is gone".to_owned()))
        })
    }

    fn events(&self) -> Option<mpsc::UnboundedReceiver<LaunchEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
