//! The supervisors: one for each endpoint whose provider has a launcher. At the start they adopt the workers that run.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use longshore_launch::{Launcher, RunningWorker, WorkerExit};
use longshore_model::{EndpointId, Provider};
use tokio::sync::{mpsc, watch};

use super::Engine;
use crate::supervisor::{FleetEvent, FleetStatus, SupervisorParts, adopt};
use crate::{EndpointHandle, Workers};

impl Engine {
    /// Adopts the workers that an earlier server left running, and starts a supervisor for each endpoint whose provider
    /// has a launcher.
    pub(super) async fn start_fleet(&self) {
        for (provider, launcher) in &self.inner.launchers {
            self.start_fleet_at(*provider, launcher).await;
        }
    }

    /// As [`Engine::start_fleet`], for one provider. If the adoption fails, the provider's supervisors start without
    /// workers.
    async fn start_fleet_at(&self, provider: Provider, launcher: &Arc<dyn Launcher>) {
        let exits = launcher.exits();
        let known = |id: &EndpointId| self.endpoint(id.as_str()).is_some();
        let (runtime, settings) = (self.inner.services.runtime.as_ref(), &self.inner.workers);
        let mut adopted = match adopt(launcher, &self.inner.gpu_pool, runtime, settings, known).await {
            Ok(adopted) => adopted,
            Err(error) => {
                let provider = provider.as_str();
                tracing::error!(provider, %error, "workers of an earlier server not adopted");
                HashMap::new()
            }
        };
        for handle in self.endpoints() {
            let present = adopted.remove(&handle.record().id).unwrap_or_default();
            if handle.record().provider == provider {
                self.supervise(&handle, present);
            } else if !present.is_empty() {
                // The endpoint has changed its provider since: these workers finish their jobs and end.
                let (events, _) = self.spawn_supervisor(&handle, provider, launcher, present);
                // A supervisor that has ended has no workers left.
                let _ = events.send(FleetEvent::ProviderChanged);
            }
        }
        if let Some(exits) = exits {
            self.spawn(forward(self.clone(), provider, exits));
        }
    }

    /// Starts the endpoint's supervisor, if its provider has a launcher and no supervisor runs yet.
    pub(super) fn supervise(&self, handle: &EndpointHandle, adopted: Vec<RunningWorker>) {
        let provider = handle.record().provider;
        let Some(launcher) = self.inner.launchers.get(&provider) else { return };
        if handle.shared().has_fleet() {
            return;
        }
        let (events, status) = self.spawn_supervisor(handle, provider, launcher, adopted);
        handle.shared().set_fleet(Some(events), Some(status));
    }

    /// Starts a supervisor. Returns the sender of its events and the receiver of its status.
    fn spawn_supervisor(
        &self,
        handle: &EndpointHandle,
        provider: Provider,
        launcher: &Arc<dyn Launcher>,
        adopted: Vec<RunningWorker>,
    ) -> (mpsc::UnboundedSender<FleetEvent>, watch::Receiver<FleetStatus>) {
        // Unbounded, because an actor must not wait here. `Demand` is in it once. Every other event follows a worker's
        // end or report, or a change of the endpoint: there are few of these, and none may be lost.
        let (sender, events) = mpsc::unbounded_channel();
        let supervised = self.supervisor(handle, Arc::clone(launcher), adopted).spawn(events);
        let key = (handle.record().id, provider);
        self.fleets().insert(key, sender.clone());
        let engine = self.clone();
        self.spawn(async move {
            // Ends with the endpoint's last worker. A panic is logged and does not stop the other supervisors.
            if supervised.task.await.is_err() {
                tracing::error!(endpoint = %key.0, "supervisor panicked: its workers run unsupervised");
            }
            // There is another supervisor under this key if the provider changed and changed back.
            let mut fleets = engine.fleets();
            if fleets.get(&key).is_some_and(mpsc::UnboundedSender::is_closed) {
                fleets.remove(&key);
            }
        });
        (sender, supervised.status)
    }

    /// The parts of an endpoint's supervisor at this launcher.
    fn supervisor(
        &self,
        handle: &EndpointHandle,
        launcher: Arc<dyn Launcher>,
        adopted: Vec<RunningWorker>,
    ) -> SupervisorParts<Workers> {
        let (engine, endpoint) = (self.clone(), handle.clone());
        SupervisorParts {
            template: Box::new(move || engine.catalog().template(&endpoint.record().template_id)),
            endpoint_api: handle.workers().clone(),
            launcher,
            gpu_pool: Arc::clone(&self.inner.gpu_pool),
            settings: self.inner.workers.clone(),
            token: self.worker_token(&handle.record().id),
            runtime: Arc::clone(&self.inner.services.runtime),
            adopted,
            moved: self.inner.moved,
        }
    }

    /// The senders to the supervisors. Those of deleted endpoints remain until the last worker has ended.
    pub(super) fn fleets(&self) -> std::sync::MutexGuard<'_, super::FleetSenders> {
        self.inner.fleets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the exits of a provider's workers to their supervisors, and counts the workers' time.
async fn forward(engine: Engine, provider: Provider, mut exits: mpsc::UnboundedReceiver<WorkerExit>) {
    while let Some(exited) = exits.recv().await {
        engine.inner.gpu_pool.free(&exited.worker);
        engine.meter_end(&exited);
        if let Some(fleet) = engine.fleets().get(&(exited.endpoint, provider)) {
            // A supervisor that has ended needs no events.
            let _ = fleet.send(FleetEvent::Exited(exited));
        }
    }
}
