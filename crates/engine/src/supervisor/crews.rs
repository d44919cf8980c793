//! The supervisors of all endpoints, and the launcher that they share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_launch::{Exited, LaunchError, Launcher, Present};
use longshore_model::{EndpointId, Template};
use tokio::sync::{mpsc, watch};

use super::{FleetEvent, FleetStatus, Port, Supervised, Supervisor, WorkerSettings, task};

type Ears = HashMap<EndpointId, mpsc::UnboundedSender<FleetEvent>>;

/// The supervisors of all endpoints, and the launcher that they share.
///
/// At the start of a server: [`Crews::adopt`], then [`Crews::supervise`] for every endpoint, then
/// [`Crews::deliver_exits`].
pub struct Crews {
    launcher: Arc<dyn Launcher>,
    settings: WorkerSettings,
    adopted: Mutex<HashMap<EndpointId, Vec<Present>>>,
    ears: Arc<Mutex<Ears>>,
}

impl Crews {
    /// Finds the workers that an earlier server left running. Those of endpoints that `is_known` does not know
    /// are stopped in the background.
    pub async fn adopt(
        launcher: Arc<dyn Launcher>,
        settings: WorkerSettings,
        is_known: impl Fn(&EndpointId) -> bool,
    ) -> Result<Self, LaunchError> {
        let mut adopted: HashMap<EndpointId, Vec<Present>> = HashMap::new();
        for present in launcher.adopt().await? {
            let Present { worker, endpoint, .. } = &present;
            if is_known(endpoint) {
                tracing::info!(%worker, %endpoint, "adopted a worker");
                adopted.entry(*endpoint).or_default().push(present);
            } else {
                tracing::info!(%worker, %endpoint, "stopping a worker whose endpoint is gone");
                let (launcher, grace) = (Arc::clone(&launcher), settings.stop_grace());
                tokio::spawn(async move { task::stop(&*launcher, &present.worker, grace).await });
            }
        }
        Ok(Self { launcher, settings, adopted: Mutex::new(adopted), ears: Arc::default() })
    }

    /// Begins to keep an endpoint's workers, until the event [`FleetEvent::Deleted`] or [`FleetEvent::Shutdown`].
    pub fn supervise<P: Port>(
        &self,
        port: P,
        template: impl Fn() -> Option<Arc<Template>> + Send + Sync + 'static,
        token: String,
        entropy: impl Fn() -> u128 + Send + Sync + 'static,
    ) -> (mpsc::UnboundedSender<FleetEvent>, watch::Receiver<FleetStatus>) {
        let (events, receiver) = mpsc::unbounded_channel();
        let endpoint = port.record().id;
        locked(&self.ears).insert(endpoint, events.clone());
        let supervisor = Supervisor {
            port,
            template: Box::new(template),
            launcher: Arc::clone(&self.launcher),
            settings: self.settings.clone(),
            token,
            entropy: Box::new(entropy),
            adopted: locked(&self.adopted).remove(&endpoint).unwrap_or_default(),
        };
        let Supervised { task, status } = supervisor.spawn(receiver);
        let ears = Arc::clone(&self.ears);
        tokio::spawn(async move {
            // Whichever way it ended, it hears nothing any more.
            let _ = task.await;
            locked(&ears).remove(&endpoint);
        });
        (events, status)
    }

    /// From now on every supervisor hears of the ends of its workers, also of those that came before.
    pub fn deliver_exits(&self) {
        let Some(mut exits) = self.launcher.exits() else { return };
        let ears = Arc::clone(&self.ears);
        tokio::spawn(async move {
            while let Some(exited) = exits.recv().await {
                deliver(&ears, exited);
            }
        });
    }
}

fn deliver(ears: &Mutex<Ears>, exited: Exited) {
    if let Some(ear) = locked(ears).get(&exited.endpoint) {
        // A supervisor that has ended knew of no worker any more.
        let _ = ear.send(FleetEvent::Exited(exited));
    }
}

/// A panic elsewhere leaves these maps whole: every change is one call.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
