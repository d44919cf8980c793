//! A server as far as a launcher sees one: it adopts, starts, stops, and reads events.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use longshore_launch::{InstallationId, LaunchEvent, Launcher, RunningWorker, WorkerExit, WorkerSpec};
use longshore_model::{StopReason, WorkerId};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

use crate::{Rig, endpoint};

/// The longest wait for a condition. Computers that run tests are busy.
const DEADLINE: Duration = Duration::from_mins(3);
/// A grace that no worker uses up.
pub(crate) const GRACE: Duration = Duration::from_mins(1);
/// The grace of a worker that may be stopped before it handles SIGTERM, in whole seconds, because some launchers count in
/// seconds.
pub(crate) const BRIEF: Duration = Duration::from_secs(2);
/// The script of a worker that does nothing until it is stopped. As the first process of a container, a program that does not
/// handle SIGTERM would not end by it.
pub(crate) const IDLE: &str = "trap 'exit 0' TERM; sleep 600 & wait";

/// A worker id that no other case has: an id is used once.
pub(crate) fn new_id() -> String {
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("wk-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

/// A launcher, what it adopted, and its events. The drop is the death of the server.
pub struct Server {
    /// The launcher, with its workers adopted.
    pub launcher: Arc<dyn Launcher>,
    /// The workers of the earlier server.
    pub adopted: Vec<RunningWorker>,
    events: UnboundedReceiver<LaunchEvent>,
}

impl Server {
    /// The next server of a rig. The one before must have been dropped.
    pub async fn next(rig: &dyn Rig) -> Self {
        Self::of(rig.next_launcher()).await
    }

    pub(crate) async fn of(launcher: Arc<dyn Launcher>) -> Self {
        let adopted = launcher.adopt(InstallationId(1)).await.unwrap();
        let events = launcher.events().unwrap();
        Self { launcher, adopted, events }
    }

    /// The next server, which finds no worker.
    pub(crate) async fn fresh(rig: &dyn Rig) -> Self {
        let server = Self::next(rig).await;
        assert_eq!(server.adopted, [], "the case before left a worker");
        server
    }

    pub(crate) async fn start(&self, spec: WorkerSpec) -> WorkerId {
        let worker = spec.worker.clone();
        self.launcher.start(spec).await.unwrap();
        worker
    }

    pub(crate) async fn stop(&self, worker: &WorkerId, grace: Duration) {
        self.launcher.stop(worker, grace, &StopReason::Operator).await.unwrap();
    }

    /// Waits for the next event.
    pub(crate) async fn event(&mut self) -> LaunchEvent {
        timeout(DEADLINE, self.events.recv()).await.expect("an event in time").unwrap()
    }

    /// Waits for the next exit. Stages of starts are skipped.
    pub(crate) async fn exit(&mut self) -> WorkerExit {
        loop {
            if let LaunchEvent::Exited(exited) = self.event().await {
                return exited;
            }
        }
    }

    /// The exits that are reported already.
    pub(crate) fn exits(&mut self) -> Vec<WorkerExit> {
        let events = std::iter::from_fn(|| self.events.try_recv().ok());
        events
            .filter_map(|event| match event {
                LaunchEvent::Exited(exited) => Some(exited),
                _ => None,
            })
            .collect()
    }

    /// What a worker printed; empty without a log.
    pub(crate) fn log(&self, worker: &WorkerId) -> String {
        let log = self.launcher.worker_log(&endpoint(), worker);
        log.map(|log| fs::read_to_string(log.path).unwrap_or_default()).unwrap_or_default()
    }

    /// Waits until the worker printed something that contains `text`.
    pub(crate) async fn prints(&self, worker: &WorkerId, text: &str) -> String {
        eventually(async || Some(self.log(worker)).filter(|log| log.contains(text))).await
    }
}

/// Calls `check` every 20 ms until it returns a value.
pub(crate) async fn eventually<T>(check: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(begun.elapsed() < DEADLINE, "the condition was not met in time");
        sleep(Duration::from_millis(20)).await;
    }
}
