//! A launcher for tests: workers are entries in a list, and the test ends them.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_model::{EndpointId, StartStage, StopReason, VolumeId, WorkerId};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::{
    Born, InstallationId, LaunchError, LaunchEvent, LaunchFuture, Launcher, RunningWorker, Starts,
    WorkerExit, WorkerSpec,
};

/// A launcher whose workers are entries in a list. A worker exits immediately when it is stopped, and otherwise when the
/// test calls [`MemoryLauncher::exit`].
pub struct MemoryLauncher {
    list: Mutex<List>,
    starts: Starts,
    sender: mpsc::UnboundedSender<LaunchEvent>,
    events: Mutex<Option<mpsc::UnboundedReceiver<LaunchEvent>>>,
}

#[derive(Default)]
struct List {
    started: Vec<WorkerSpec>,
    stopped: Vec<(WorkerId, Duration)>,
    cleared: Vec<WorkerId>,
    living: Vec<RunningWorker>,
    volumes: BTreeSet<VolumeId>,
    /// The workers whose machine is away.
    away: Vec<RunningWorker>,
    refuses: Option<String>,
    start_takes: Duration,
}

impl Default for MemoryLauncher {
    fn default() -> Self {
        Self::with_living(Vec::new())
    }
}

impl MemoryLauncher {
    /// A launcher with running workers of an earlier server.
    pub fn with_living(living: Vec<RunningWorker>) -> Self {
        // Bounded by the number of workers: each sends one exit.
        let (sender, events) = mpsc::unbounded_channel();
        let list = Mutex::new(List { living, ..List::default() });
        Self { list, starts: Starts::default(), sender, events: Mutex::new(Some(events)) }
    }

    /// From now on no worker can be adopted or started and no volume changed, for this reason; `None`: all succeed again.
    pub fn refuse(&self, reason: Option<&str>) {
        self.list().refuses = reason.map(str::to_owned);
    }

    /// From now on, each start takes `start_takes`.
    pub fn slow_down(&self, start_takes: Duration) {
        self.list().start_takes = start_takes;
    }

    /// The machine of all workers that run goes away, or comes back. Workers that are started meanwhile are on another one.
    pub fn set_away(&self, is_away: bool) {
        let mut list = self.list();
        let workers = if is_away { list.living.clone() } else { std::mem::take(&mut list.away) };
        for RunningWorker { worker, endpoint, .. } in &workers {
            let (worker, endpoint) = (worker.clone(), *endpoint);
            let machine = "memory".to_owned();
            // A test without a receiver ignores events.
            let _ = self.sender.send(if is_away {
                LaunchEvent::Away { worker, endpoint, machine }
            } else {
                LaunchEvent::Back { worker, endpoint }
            });
        }
        if is_away {
            list.away = workers;
        }
    }

    /// Every worker that was started, in order.
    pub fn started(&self) -> Vec<WorkerSpec> {
        self.list().started.clone()
    }

    /// Every worker that was stopped, in order, with its grace.
    pub fn stopped(&self) -> Vec<(WorkerId, Duration)> {
        self.list().stopped.clone()
    }

    /// Every worker of which leftover processes were to be ended, in order.
    pub fn cleared(&self) -> Vec<WorkerId> {
        self.list().cleared.clone()
    }

    /// The workers that run, in the order of their starts.
    pub fn living(&self) -> Vec<WorkerId> {
        self.list().living.iter().map(|present| present.worker.clone()).collect()
    }

    /// The volumes that have a directory.
    pub fn volumes(&self) -> BTreeSet<VolumeId> {
        self.list().volumes.clone()
    }

    fn change_volumes(&self, change: impl FnOnce(&mut BTreeSet<VolumeId>)) -> LaunchFuture<'_, ()> {
        let mut list = self.list();
        let changed = if let Some(reason) = &list.refuses {
            Err(LaunchError(reason.clone()))
        } else {
            change(&mut list.volumes);
            Ok(())
        };
        Box::pin(async { changed })
    }

    /// A launcher as the next server makes it, with the workers that run here.
    #[must_use]
    pub fn successor(&self) -> Self {
        Self::with_living(self.list().living.clone())
    }

    /// Lets a worker exit by itself. Does nothing if the worker does not run.
    pub fn exit(&self, worker: &WorkerId, code: Option<i32>, signal: Option<i32>, ran_ms: u64) {
        self.end(worker, (code, signal), ran_ms, false);
    }

    fn end(
        &self,
        worker: &WorkerId,
        (code, signal): (Option<i32>, Option<i32>),
        ran_ms: u64,
        expected: bool,
    ) {
        let mut list = self.list();
        let Some(at) = list.living.iter().position(|present| present.worker == *worker) else { return };
        let RunningWorker { worker, endpoint, placement, .. } = list.living.remove(at);
        let log_tail = "the last words".to_owned();
        let exited = WorkerExit {
            stage: None,
            worker,
            endpoint,
            code,
            signal,
            ran_ms,
            log_tail,
            expected,
            placement,
            because: None,
        };
        // A test without a receiver ignores exits.
        let _ = self.sender.send(LaunchEvent::Exited(exited));
    }

    /// Reports a stage of a start that is in progress.
    pub fn report(&self, worker: &WorkerId, endpoint: EndpointId, stage: StartStage) {
        let _ = self.sender.send(LaunchEvent::Stage { worker: worker.clone(), endpoint, stage });
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Launcher for MemoryLauncher {
    fn adopt(&self, _installation: InstallationId) -> LaunchFuture<'_, Vec<RunningWorker>> {
        let list = self.list();
        let adopted = list.refuses.clone().map_or_else(|| Ok(list.living.clone()), |it| Err(LaunchError(it)));
        Box::pin(async { adopted })
    }

    fn start(&self, spec: WorkerSpec) -> LaunchFuture<'_, ()> {
        Box::pin(async move {
            let start = self.starts.begin(&spec.worker);
            let takes = self.list().start_takes;
            if !takes.is_zero() {
                tokio::select! {
                    () = start.cancelled() => return Err(start.error()),
                    () = sleep(takes) => {}
                }
            }
            let mut list = self.list();
            if let Some(reason) = &list.refuses {
                return Err(LaunchError(reason.clone()));
            }
            let WorkerSpec { worker, endpoint, version, placement, server_url, .. } = spec.clone();
            let server_url = Some(server_url);
            let is_stopping = false;
            list.living.push(RunningWorker { worker, endpoint, version, is_stopping, placement, server_url });
            list.started.push(spec);
            Ok(())
        })
    }

    fn stop(&self, worker: &WorkerId, grace: Duration, _reason: &StopReason) -> LaunchFuture<'_, ()> {
        self.list().stopped.push((worker.clone(), grace));
        let worker = worker.clone();
        Box::pin(async move {
            self.starts.cancel(&worker).await;
            self.end(&worker, (Some(0), None), 1_000, true);
            Ok(())
        })
    }

    fn end_leftovers(&self, worker: &WorkerId, _born: Born, _grace: Duration) -> LaunchFuture<'_, usize> {
        self.list().cleared.push(worker.clone());
        Box::pin(async { Ok(1) })
    }

    fn make_volume(&self, volume: &VolumeId) -> LaunchFuture<'_, ()> {
        self.change_volumes(|volumes| {
            volumes.insert(*volume);
        })
    }

    fn mark_volume_deleted(&self, volume: &VolumeId) -> LaunchFuture<'_, ()> {
        self.change_volumes(|volumes| {
            volumes.remove(volume);
        })
    }

    fn events(&self) -> Option<mpsc::UnboundedReceiver<LaunchEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
