//! Draining the server, before its computer is rebooted: jobs are accepted and kept, and none is handed out. On a full
//! disk, none is accepted either.

use std::sync::atomic::Ordering;
use std::time::Duration;

use longshore_model::{Endpoint, Millis};

use super::Engine;
use crate::actor::request::Request;
use crate::drain::DrainProgress;
use crate::supervisor::FleetEvent;
use crate::{EndpointError, EndpointHandle};

/// How long [`Engine::begin_drain`] waits for queues that still load.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before a queue that reloads is asked again.
const REPEAT: Duration = Duration::from_millis(100);

impl Engine {
    /// Begins to drain the server. When this returns, no loaded queue hands out a job; a queue that loads for longer
    /// than 10 s follows when it is loaded. Jobs that run go on, submits are accepted, and managed workers end after
    /// their jobs. Changes nothing in the store: a restart ends the drain.
    pub async fn begin_drain(&self) {
        self.inner.services.drain.begin(self.now());
        self.pause_queues().await;
        for handle in self.endpoints() {
            handle.shared().notify_fleet(FleetEvent::Demand);
        }
        let DrainProgress { busy_workers, managed_workers } = self.drain_progress();
        tracing::info!(busy_workers, managed_workers, "draining, no job is handed out");
    }

    /// Pauses the queues. Those that load for longer than 10 s follow when they are loaded.
    async fn pause_queues(&self) {
        let pauses: Vec<_> =
            self.endpoints().into_iter().map(|handle| self.spawn(pause(self.clone(), handle))).collect();
        let all_paused = async {
            for pause in pauses {
                // A pause does not panic, and nothing aborts it.
                let _ = pause.await;
            }
        };
        if tokio::time::timeout(PAUSE_TIMEOUT, all_paused).await.is_err() {
            tracing::warn!("queues not paused before they are loaded");
        }
    }

    /// Applies its settings to each queue: those that hand out jobs again do.
    fn resume_queues(&self) {
        for handle in self.endpoints() {
            let record = Endpoint::clone(&handle.record());
            // An actor that has ended hands out no job.
            let _ = handle.shared().requests.send(Request::Configure(Box::new(record)));
        }
    }

    /// Sets why the disk has too little space for new jobs; `None` if it has enough. Until then, submits are refused with
    /// [`EndpointError::NoSpace`] and no job is handed out. Reads and deletions are served, and jobs that run go on.
    pub async fn set_space_shortage(&self, reason: Option<String>) {
        let text = reason.clone();
        match (self.inner.services.space.set(reason, self.now()), text) {
            (false, _) => {}
            (true, Some(reason)) => {
                tracing::error!(%reason, "disk full, refusing new jobs");
                self.pause_queues().await;
            }
            (true, None) => {
                tracing::info!("disk has space again");
                self.resume_queues();
            }
        }
    }

    /// Why the disk has too little space for new jobs; `None` if it has enough.
    pub fn space_shortage(&self) -> Option<String> {
        self.inner.services.space.reason()
    }

    /// Ends the drain: queued jobs are handed out, and workers start as the load needs them.
    pub fn end_drain(&self) {
        self.inner.services.drain.end();
        self.resume_queues();
        for handle in self.endpoints() {
            handle.shared().notify_fleet(FleetEvent::Demand);
        }
        tracing::info!("drain ended");
    }

    /// Since when the server drains; `None` if it does not.
    pub fn draining_since(&self) -> Option<Millis> {
        self.inner.services.drain.since()
    }

    /// The workers that a drain waits for. A drain is complete when there are none.
    pub fn drain_progress(&self) -> DrainProgress {
        let mut progress = DrainProgress::default();
        for handle in self.endpoints() {
            progress.busy_workers += u64::from(handle.shared().running_workers.load(Ordering::Relaxed));
            progress.managed_workers += handle.workers().fleet_status().workers.len() as u64;
        }
        progress
    }
}

/// Pauses an endpoint's queue, unless jobs are handed out again meanwhile. A queue that reloads refuses, and is asked again.
async fn pause(engine: Engine, handle: EndpointHandle) {
    while engine.inner.services.holds_jobs() {
        let (reply, done) = tokio::sync::oneshot::channel();
        let is_sent = handle.shared().requests.send(Request::Pause { reply }).is_ok();
        // An actor that has ended hands out no job.
        if !is_sent || !matches!(done.await, Ok(Err(EndpointError::Unavailable(_)))) {
            return;
        }
        tokio::time::sleep(REPEAT).await;
    }
}
