//! What the actor of one endpoint shares with its handles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use longshore_blobs::Blobs;
use longshore_model::{End, Endpoint, EndpointId, EndpointNo, JobId, JobKey, Millis, Submitter};
use longshore_planted::{Bug, planted};
use longshore_store::{BlobRef, Payload, Store};
use longshore_vault::Vault;
use tokio::sync::{mpsc, watch};

use crate::actor::ask::Ask;
use crate::chores::webhooks::signing::Secrets;
use crate::chores::webhooks::{HookDue, HookLog, Webhooks};
use crate::host::{Clock, Host};
use crate::owner_use::{OwnerUse, Use, UseBySubmitter};
use crate::read_faults::ReadFaults;
use crate::recent::Recent;
use crate::room::Room;
use crate::stops::Stops;
use crate::supervisor::{FleetEvent, FleetStatus};
use crate::{AskError, EndpointHandle, EndpointMetrics, EngineMetrics, EngineSettings};

/// The parts that every endpoint of an engine works with.
pub(crate) struct Ground {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) clock: Clock,
    pub(crate) settings: EngineSettings,
    pub(crate) vault: Arc<Vault>,
    pub(crate) recent: Recent,
    /// For what is read for clients.
    pub(crate) answers: Room,
    /// For what is read for workers: of its own, so that clients that do not read keep no worker waiting.
    pub(crate) inputs: Room,
    pub(crate) read_faults: ReadFaults,
    pub(crate) metrics: Arc<EngineMetrics>,
    pub(crate) owner_use: OwnerUse,
    pub(crate) hooks: Webhooks<EndpointHandle>,
    pub(crate) hook_log: Arc<dyn HookLog>,
}

/// One endpoint as its handles and its actor see it.
pub(crate) struct Shared {
    pub(crate) ground: Arc<Ground>,
    pub(crate) asks: mpsc::UnboundedSender<Ask>,
    pub(crate) stops: Stops,
    pub(crate) metrics: EndpointMetrics,
    /// What jobs used since the meter last took it.
    job_use: Mutex<BTreeMap<Submitter, Use>>,
    /// Workers that hold a job at this moment.
    pub(crate) running_workers: AtomicU32,
    /// Deleted: everybody is answered as if it were not there.
    pub(crate) gone: AtomicBool,
    /// The server stops: nobody is held any more.
    pub(crate) stopping: AtomicBool,
    /// Set when the queue is loaded and stray payload files are swept.
    pub(crate) loaded: tokio::sync::SetOnce<()>,
    /// What never changes of the record.
    pub(crate) id: EndpointId,
    pub(crate) no: EndpointNo,
    record: RwLock<Arc<Endpoint>>,
    /// With which webhooks are signed.
    secrets: RwLock<Arc<Secrets>>,
    fleet: Mutex<Option<mpsc::UnboundedSender<FleetEvent>>>,
    demand_told: AtomicBool,
    crew: Mutex<Option<watch::Receiver<FleetStatus>>>,
}

impl Shared {
    pub(crate) fn new(ground: Arc<Ground>, record: Endpoint, asks: mpsc::UnboundedSender<Ask>) -> Self {
        Self {
            ground,
            asks,
            stops: Stops::default(),
            metrics: EndpointMetrics::default(),
            job_use: Mutex::default(),
            running_workers: AtomicU32::new(0),
            gone: AtomicBool::new(record.deleting),
            stopping: AtomicBool::new(false),
            loaded: tokio::sync::SetOnce::new(),
            id: record.id,
            no: record.no,
            record: RwLock::new(Arc::new(record)),
            secrets: RwLock::default(),
            fleet: Mutex::new(None),
            demand_told: AtomicBool::new(false),
            crew: Mutex::default(),
        }
    }

    pub(crate) fn record(&self) -> Arc<Endpoint> {
        self.record.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether jobs that name no webhook have one all the same.
    pub(crate) fn has_webhook(&self) -> bool {
        self.record.read().unwrap_or_else(PoisonError::into_inner).webhook.is_some()
    }

    pub(crate) fn set_record(&self, record: Arc<Endpoint>) {
        *self.record.write().unwrap_or_else(PoisonError::into_inner) = record;
    }

    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_secrets(&self, secrets: Secrets) {
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(secrets);
    }

    /// Connects the supervisor of the endpoint's workers.
    pub(crate) fn set_fleet(
        &self,
        fleet: Option<mpsc::UnboundedSender<FleetEvent>>,
        status: Option<watch::Receiver<FleetStatus>>,
    ) {
        *self.fleet.lock().unwrap_or_else(PoisonError::into_inner) = fleet;
        *self.crew.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(crate) fn has_fleet(&self) -> bool {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Tells the supervisor, if there is one. Demand is told once until the supervisor has looked.
    pub(crate) fn tell_fleet(&self, event: FleetEvent) {
        if matches!(event, FleetEvent::Demand) && self.demand_told.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(fleet) = &*self.fleet.lock().unwrap_or_else(PoisonError::into_inner) {
            // The supervisor ends only with the endpoint or the server.
            let _ = fleet.send(event);
        }
    }

    /// The supervisor is about to look at the demand: later changes are news again.
    pub(crate) fn demand_seen(&self) {
        self.demand_told.store(false, Ordering::Release);
    }

    /// What the supervisor says of the workers that the queue cannot know.
    pub(crate) fn fleet_status(&self) -> FleetStatus {
        let crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner);
        crew.as_ref().map(|status| status.borrow().clone()).unwrap_or_default()
    }

    /// Counts what the jobs of a commit used.
    pub(crate) fn count_use(&self, used: UseBySubmitter) {
        for (submitter, used) in used.into_entries() {
            self.ground.owner_use.add(submitter.owner, used);
            if used.ended > 0 {
                let mut job_use = self.job_use.lock().unwrap_or_else(PoisonError::into_inner);
                job_use.entry(submitter).or_default().add(used);
            }
        }
    }

    /// What jobs used since the last call.
    pub(crate) fn take_job_use(&self) -> BTreeMap<Submitter, Use> {
        std::mem::take(&mut self.job_use.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn now(&self) -> Millis {
        self.ground.clock.now()
    }

    /// Hands an owed webhook call to the chore.
    pub(crate) fn owe_hook(
        self: &Arc<Self>,
        job: JobId,
        key: JobKey,
        end: End,
        attempts: u32,
        due_at: Millis,
    ) {
        let handle = EndpointHandle::new(Arc::clone(self));
        self.ground.hooks.owe(HookDue { handle, job, key, end, attempts, due_at });
    }

    /// Whether a payload becomes a file before it gets into the store.
    pub(crate) fn is_large(&self, payload: &Bytes) -> bool {
        payload.len() > self.ground.settings.blob_bytes_min
    }

    /// Makes a large payload a file, whose name begins like this.
    pub(crate) async fn stow(&self, stem: String, payload: Bytes) -> Result<BlobRef, AskError> {
        // The sweep must not take a new file for a stray one.
        self.loaded.wait().await;
        let reference = BlobRef::new(&stem, &payload);
        let put = self.ground.blobs.put(&reference.name, payload).await;
        put.map_err(|error| AskError::Unavailable(error.to_string()))?;
        Ok(reference)
    }

    /// The bytes of a stored payload.
    pub(crate) async fn fetch(&self, payload: Payload) -> Result<Bytes, AskError> {
        let reference = match payload {
            Payload::Inline(bytes) => return Ok(bytes),
            Payload::Blob(reference) => reference,
        };
        match self.ground.blobs.get(&reference.name).await {
            Ok(Some(bytes)) => match reference.damage(&bytes) {
                None => Ok(bytes),
                Some(what) => Err(AskError::Damaged(format!("the file `blobs/{}` {what}", reference.name))),
            },
            Ok(None) => Err(AskError::Damaged(format!("the file `blobs/{}` is missing", reference.name))),
            Err(error) => Err(AskError::Unreadable(error.to_string())),
        }
    }

    /// The bytes of a stored output.
    pub(crate) async fn fetch_output(&self, payload: Payload) -> Result<Bytes, AskError> {
        if planted(Bug::DamagedOutputServed)
            && let Payload::Blob(reference) = &payload
            && let Ok(Some(bytes)) = self.ground.blobs.get(&reference.name).await
        {
            return Ok(bytes);
        }
        self.fetch(payload).await
    }

    /// Removes files whose rows are gone. What fails is swept at the next start.
    pub(crate) fn delete_blobs(self: &Arc<Self>, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let ground = Arc::clone(&self.ground);
        self.ground.host.spawn(Box::pin(async move {
            for name in names {
                if let Err(error) = ground.blobs.delete(&name).await {
                    tracing::warn!(%name, %error, "a payload file could not be deleted");
                }
            }
        }));
    }

    /// The name of a new file for a job's output: attempts and progress values must not overwrite each other's.
    pub(crate) fn output_file(&self, job: JobId) -> String {
        let nonce = self.ground.host.entropy() as u64;
        format!("{}/{job}.output.{nonce:016x}", blob_folder(&self.record()))
    }
}

/// The folder of an endpoint's payload files.
pub(crate) fn blob_folder(record: &Endpoint) -> String {
    record.no.0.to_string()
}
