//! The workers of every endpoint: found again at the start, then kept by one supervisor per endpoint.

use std::sync::{Arc, PoisonError};

use longshore_launch::{Launcher, RunningWorker, WorkerExit};
use longshore_model::{EndpointId, Provider};
use tokio::sync::mpsc;

use super::Engine;
use crate::EndpointHandle;
use crate::supervisor::{FleetEvent, SupervisorParts, adopt};

impl Engine {
    /// Adopts what an earlier server left running, and begins to supervise.
    pub(super) async fn start_fleet(&self) {
        let Some(launcher) = self.inner.launcher.clone() else { return };
        let exits = launcher.exits();
        let known = |id: &EndpointId| self.endpoint(id.as_str()).is_some();
        let (host, settings) = (self.inner.services.runtime.as_ref(), &self.inner.workers);
        let mut adopted = match adopt(&launcher, &self.inner.gpu_pool, host, settings, known).await {
            Ok(adopted) => adopted,
            Err(error) => {
                tracing::error!(%error, "workers of an earlier server could not be looked for");
                std::collections::HashMap::new()
            }
        };
        for handle in self.endpoints() {
            let present = adopted.remove(&handle.record().id).unwrap_or_default();
            self.supervise(&handle, present);
        }
        if let Some(exits) = exits {
            self.spawn(forward(self.clone(), exits));
        }
    }

    /// Begins to keep an endpoint's workers, if that is ours to do.
    pub(super) fn supervise(&self, handle: &EndpointHandle, adopted: Vec<RunningWorker>) {
        let Some(launcher) = self.inner.launcher.clone() else { return };
        let record = handle.record();
        if record.provider != Provider::Process || handle.shared.has_fleet() {
            return;
        }
        // Unbounded, because an actor must not wait here. `Demand` is in it once. Every other event follows a worker's
        // end or report, or a change of the endpoint: there are few of these, and none may get lost.
        let (sender, events) = mpsc::unbounded_channel();
        let supervised = self.supervisor(handle, launcher, adopted).spawn(events);
        handle.shared.set_fleet(Some(sender.clone()), Some(supervised.status));
        self.fleets().insert(record.id, sender);
        let (engine, id) = (self.clone(), record.id);
        self.spawn(async move {
            // Ends with the endpoint's last worker; a panic in there is logged and must not stop the others.
            if supervised.task.await.is_err() {
                tracing::error!(endpoint = %id, "a supervisor panicked: the endpoint's workers are on their own");
            }
            // Another one may have followed it meanwhile, if the provider changed to and fro.
            let mut fleets = engine.fleets();
            if fleets.get(&id).is_some_and(mpsc::UnboundedSender::is_closed) {
                fleets.remove(&id);
            }
        });
    }

    fn supervisor(
        &self,
        handle: &EndpointHandle,
        launcher: Arc<dyn Launcher>,
        adopted: Vec<RunningWorker>,
    ) -> SupervisorParts<EndpointHandle> {
        let (engine, port) = (self.clone(), handle.clone());
        SupervisorParts {
            template: Box::new(move || engine.template(&port.record().template_id)),
            endpoint_api: handle.clone(),
            launcher,
            gpu_pool: Arc::clone(&self.inner.gpu_pool),
            settings: self.inner.workers.clone(),
            token: self.worker_token(&handle.record().id),
            runtime: Arc::clone(&self.inner.services.runtime),
            adopted,
            moved: self.inner.moved,
        }
    }

    /// The supervisors' ears, those of deleted endpoints included until their last worker is gone.
    pub(super) fn fleets(&self) -> std::sync::MutexGuard<'_, super::FleetSenders> {
        self.inner.fleets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets every supervisor know of its workers' ends.
async fn forward(engine: Engine, mut exits: mpsc::UnboundedReceiver<WorkerExit>) {
    while let Some(exited) = exits.recv().await {
        engine.inner.gpu_pool.free(&exited.worker);
        engine.meter_end(&exited);
        if let Some(fleet) = engine.fleets().get(&exited.endpoint) {
            // A supervisor that has ended needs to know nothing more.
            let _ = fleet.send(FleetEvent::Exited(exited));
        }
    }
}
