//! The supervisors: one for each endpoint whose provider has a launcher. At the start they adopt the workers that run.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_fleet::ProviderFault;
use longshore_launch::{GpuReading, LaunchEvent, Launcher, RegistryLogin, RunningWorker};
use longshore_model::{EndpointId, Provider, StopReason};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::Engine;
use crate::supervisor::{FleetEvent, FleetStatus, SupervisorParts, adopt, stop};
use crate::{EndpointHandle, Workers};

/// The pause before an adoption that failed is tried again.
const ADOPT_AGAIN_IN: Duration = Duration::from_secs(2);

impl Engine {
    /// Adopts the workers that an earlier server left running, and starts a supervisor for each endpoint whose provider
    /// has a launcher. No worker is started at a provider before the adoption there: a worker of an endpoint could run
    /// twice. An adoption that fails is tried again in the background, and does not delay the other providers.
    pub(super) async fn start_fleet(&self) {
        for (provider, launcher) in self.inner.launchers.clone() {
            if self.start_fleet_at(provider, &launcher).await {
                continue;
            }
            let engine = self.clone();
            self.spawn(async move {
                loop {
                    sleep(ADOPT_AGAIN_IN).await;
                    if engine.start_fleet_at(provider, &launcher).await {
                        return;
                    }
                }
            });
        }
    }

    /// As [`Engine::start_fleet`], for one provider. Returns whether the workers could be adopted; nothing is started if
    /// not.
    async fn start_fleet_at(&self, provider: Provider, launcher: &Arc<dyn Launcher>) -> bool {
        let known = |id: &EndpointId| self.endpoint(id.as_str()).is_some();
        let (runtime, settings) = (self.inner.services.runtime.as_ref(), &self.inner.workers);
        let gpus = &self.inner.gpu_pool;
        let mut adopted = match adopt(launcher, self.installation(), gpus, runtime, settings, known).await {
            Ok(adopted) => adopted,
            Err(error) => {
                self.note_not_adopted(provider, &error.to_string());
                return false;
            }
        };
        // An endpoint that changes meanwhile must not get a supervisor that does not know its workers.
        let _lock = self.catalog().lock().await;
        self.not_adopted().remove(&provider);
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
        for left in adopted.into_values().flatten() {
            // Its endpoint was deleted during the adoption.
            let (launcher, grace) = (Arc::clone(launcher), settings.stop_grace(None));
            self.spawn(
                async move { stop(&*launcher, &left.worker, grace, &StopReason::EndpointDeleted).await },
            );
        }
        if let Some(events) = launcher.events() {
            self.spawn(forward(self.clone(), provider, events));
        }
        true
    }

    /// Returns when a worker with a GPU has ended by itself since the last call: its GPU may be the cause.
    pub async fn gpu_worker_ended(&self) {
        self.inner.gpu_pool.ended().await;
    }

    /// Builds a container image of the files in `context`, a tar archive with a `Dockerfile`, and returns its whole name.
    /// `image` is a name with a tag. `print` gets pieces of the output; the drop of its receiver ends the build.
    ///
    /// # Errors
    ///
    /// Why there is no image, as text.
    pub async fn build_image(
        &self,
        image: &str,
        context: Vec<u8>,
        print: mpsc::Sender<String>,
    ) -> Result<String, String> {
        let launcher = self.inner.launchers.get(&Provider::Docker);
        let launcher = launcher.ok_or_else(|| "this server starts no containers".to_owned())?;
        tokio::select! {
            built = launcher.build_image(image, context, print.clone()) => built.map_err(|error| error.to_string()),
            () = print.closed() => Err("the client ended the connection".to_owned()),
        }
    }

    /// Notes why the workers of a provider could not be adopted. Logs the reason if it is a new one.
    fn note_not_adopted(&self, provider: Provider, reason: &str) {
        let before = self.not_adopted().get(&provider).cloned().flatten();
        let since = before.as_ref().map_or_else(|| self.now(), |fault| fault.since);
        self.not_adopted().insert(provider, Some(ProviderFault { reason: reason.to_owned(), since }));
        if before.is_none_or(|fault| fault.reason != reason) {
            let provider = provider.as_str();
            tracing::error!(
                provider,
                reason,
                "workers of an earlier server not adopted, no worker is started"
            );
        }
    }

    /// The providers whose workers are not adopted yet, each with the reason, if its adoption failed.
    pub(super) fn not_adopted(&self) -> MutexGuard<'_, BTreeMap<Provider, Option<ProviderFault>>> {
        self.inner.not_adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the endpoint's supervisor, if its provider has a launcher that has adopted its workers, and no supervisor runs
    /// yet.
    pub(super) fn supervise(&self, handle: &EndpointHandle, adopted: Vec<RunningWorker>) {
        let provider = handle.record().provider;
        let Some(launcher) = self.inner.launchers.get(&provider) else { return };
        if handle.shared().has_fleet() || self.not_adopted().contains_key(&provider) {
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
        let (secrets, logins, tokens, id) = (self.clone(), self.clone(), self.clone(), handle.id());
        SupervisorParts {
            template: Box::new(move || engine.catalog().template(&endpoint.record().template_id)),
            secret: Box::new(move |name| secrets.catalog().secret(name).map(|secret| secret.value)),
            login: Box::new(move |id| {
                let auth = logins.catalog().registry_auth(&id.parse().ok()?)?;
                Some(RegistryLogin { username: auth.username, password: auth.password })
            }),
            endpoint_api: handle.workers().clone(),
            launcher,
            gpu_pool: Arc::clone(&self.inner.gpu_pool),
            settings: self.inner.workers.clone(),
            token: Box::new(move |worker| tokens.managed_worker_token(&id, worker)),
            runtime: Arc::clone(&self.inner.services.runtime),
            adopted,
            moved: self.inner.moved,
        }
    }

    /// Notes what the driver says of the GPUs now. A GPU that is missing or has a fault is given to no worker, and the worker
    /// that has it is replaced.
    pub fn note_gpus(&self, readings: Vec<GpuReading>) {
        for (worker, endpoint, reason) in self.inner.gpu_pool.note_readings(readings) {
            let fleets = self.fleets();
            for (_, fleet) in fleets.iter().filter(|((of, _), _)| *of == endpoint) {
                // A supervisor that has ended, or does not know the worker, replaces none.
                let (worker, reason) = (worker.clone(), reason.clone());
                let _ = fleet.send(FleetEvent::Replace { worker, reason });
            }
        }
    }

    /// Notes that the driver of the GPUs does not answer. Until [`note_gpus`](Self::note_gpus) is called, no worker gets a
    /// GPU, and workers that have one go on.
    pub fn note_gpus_unreadable(&self, reason: &str) {
        self.inner.gpu_pool.note_unreadable(reason);
    }

    /// The senders to the supervisors. Those of deleted endpoints remain until the last worker has ended.
    pub(super) fn fleets(&self) -> MutexGuard<'_, super::FleetSenders> {
        self.inner.fleets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the events of a provider's workers to their supervisors, and counts the workers' time.
async fn forward(engine: Engine, provider: Provider, mut events: mpsc::UnboundedReceiver<LaunchEvent>) {
    while let Some(event) = events.recv().await {
        let (endpoint, event) = match event {
            LaunchEvent::Stage { worker, endpoint, stage } => (endpoint, FleetEvent::Stage { worker, stage }),
            LaunchEvent::Away { worker, endpoint, machine } => {
                (endpoint, FleetEvent::Away { worker, machine })
            }
            LaunchEvent::Back { worker, endpoint } => (endpoint, FleetEvent::Back { worker }),
            LaunchEvent::Exited(exited) => {
                engine.inner.gpu_pool.free(&exited.worker);
                engine.inner.gpu_pool.note_end(&exited);
                engine.meter_end(&exited);
                (exited.endpoint, FleetEvent::Exited(exited))
            }
        };
        if let Some(fleet) = engine.fleets().get(&(endpoint, provider)) {
            // A supervisor that has ended needs no events.
            let _ = fleet.send(event);
        }
    }
}
