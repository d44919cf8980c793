//! What the actor of one endpoint shares with its handles.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use longshore_blobs::{BlobError, Blobs};
use longshore_model::{Endpoint, EndpointId, EndpointNo, JobEnd, JobId, JobKey, Millis, Submitter};
use longshore_planted::{Bug, planted};
use longshore_store::{BlobRef, Payload, Store};
use longshore_vault::Keyring;
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::request::Request;
use crate::owner_use::{OwnerUse, Use, UseBySubmitter};
use crate::payload_budget::{BudgetPermit, PayloadBudget};
use crate::payload_cache::PayloadCache;
use crate::read_faults::ReadFaults;
use crate::runtime::{Clock, Runtime};
use crate::stop_signals::StopSignals;
use crate::supervisor::{FleetEvent, FleetStatus};
use crate::webhooks::signing::Secrets;
use crate::webhooks::{PendingCall, WebhookHandle, WebhookLog};
use crate::{EndpointError, EndpointHandle, EndpointMetrics, EngineMetrics, EngineSettings};

/// The parts that every endpoint of an engine works with.
pub(crate) struct Services {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) clock: Clock,
    pub(crate) settings: EngineSettings,
    pub(crate) vault: Arc<Keyring>,
    pub(crate) payload_cache: PayloadCache,
    /// For what is read for clients.
    pub(crate) answers: PayloadBudget,
    /// For what is read for workers: of its own, so that clients that do not read keep no worker waiting.
    pub(crate) inputs: PayloadBudget,
    pub(crate) read_faults: ReadFaults,
    pub(crate) metrics: Arc<EngineMetrics>,
    pub(crate) owner_use: OwnerUse,
    pub(crate) webhooks: WebhookHandle<EndpointHandle>,
    pub(crate) webhook_log: Arc<dyn WebhookLog>,
}

/// One endpoint as its handles and its actor see it.
pub(crate) struct EndpointShared {
    pub(crate) services: Arc<Services>,
    pub(crate) requests: mpsc::UnboundedSender<Request>,
    pub(crate) stop_signals: StopSignals,
    pub(crate) metrics: EndpointMetrics,
    /// What jobs used since the meter last took it.
    job_use: Mutex<BTreeMap<Submitter, Use>>,
    /// Workers that hold a job at this moment.
    pub(crate) running_workers: AtomicU32,
    /// Deleted: everybody is answered as if it were not there.
    pub(crate) deleted: AtomicBool,
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
    load_notified: AtomicBool,
    fleet_status: Mutex<Option<watch::Receiver<FleetStatus>>>,
}

impl EndpointShared {
    pub(crate) fn new(ground: Arc<Services>, record: Endpoint, asks: mpsc::UnboundedSender<Request>) -> Self {
        Self {
            services: ground,
            requests: asks,
            stop_signals: StopSignals::default(),
            metrics: EndpointMetrics::default(),
            job_use: Mutex::default(),
            running_workers: AtomicU32::new(0),
            deleted: AtomicBool::new(record.deleting),
            stopping: AtomicBool::new(false),
            loaded: tokio::sync::SetOnce::new(),
            id: record.id,
            no: record.no,
            record: RwLock::new(Arc::new(record)),
            secrets: RwLock::default(),
            fleet: Mutex::new(None),
            load_notified: AtomicBool::new(false),
            fleet_status: Mutex::default(),
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
        *self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(crate) fn has_fleet(&self) -> bool {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Tells the supervisor, if there is one. Demand is told once until the supervisor has looked.
    pub(crate) fn notify_fleet(&self, event: FleetEvent) {
        if matches!(event, FleetEvent::Demand) && self.load_notified.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(fleet) = &*self.fleet.lock().unwrap_or_else(PoisonError::into_inner) {
            // The supervisor ends only with the endpoint or the server.
            let _ = fleet.send(event);
        }
    }

    /// The supervisor is about to look at the demand: later changes are news again.
    pub(crate) fn load_seen(&self) {
        self.load_notified.store(false, Ordering::Release);
    }

    /// What the supervisor says of the workers that the queue cannot know.
    pub(crate) fn fleet_status(&self) -> FleetStatus {
        let crew = self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner);
        crew.as_ref().map(|status| status.borrow().clone()).unwrap_or_default()
    }

    /// Counts what the jobs of a commit used.
    pub(crate) fn count_use(&self, used: UseBySubmitter) {
        for (submitter, used) in used.into_entries() {
            self.services.owner_use.add(submitter.owner, used);
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
        self.services.clock.now()
    }

    /// Hands an owed webhook call to the chore.
    pub(crate) fn enqueue_webhook(
        self: &Arc<Self>,
        job: JobId,
        key: JobKey,
        end: JobEnd,
        attempts: u32,
        due_at: Millis,
    ) {
        let handle = EndpointHandle::new(Arc::clone(self));
        self.services.webhooks.enqueue(PendingCall { handle, job, key, end, attempts, due_at });
    }

    /// Whether a payload becomes a file before it gets into the store.
    pub(crate) fn is_large(&self, payload: &Bytes) -> bool {
        payload.len() > self.services.settings.blob_bytes_min
    }

    /// Makes a large payload a file, whose name begins like this.
    pub(crate) async fn put_blob(&self, stem: String, payload: Bytes) -> Result<BlobRef, EndpointError> {
        // The sweep must not take a new file for a stray one.
        self.loaded.wait().await;
        let reference = BlobRef::new(&stem, &payload);
        let put = self.services.blobs.put(&reference.name, payload).await;
        put.map_err(|error| EndpointError::Unavailable(error.to_string()))?;
        Ok(reference)
    }

    /// The bytes of a stored payload, whose part of the budget is `room`.
    pub(crate) async fn fetch(&self, payload: Payload, room: &BudgetPermit) -> Result<Bytes, EndpointError> {
        let reference = match payload {
            Payload::Inline(bytes) => return Ok(bytes),
            Payload::Blob(reference) => reference,
        };
        match self.read_blob(&reference.name, room).await {
            Ok(Some(bytes)) => match reference.damage(&bytes) {
                None => Ok(bytes),
                Some(what) => {
                    Err(EndpointError::Damaged(format!("the file `blobs/{}` {what}", reference.name)))
                }
            },
            Ok(None) => {
                Err(EndpointError::Damaged(format!("the file `blobs/{}` is missing", reference.name)))
            }
            Err(error) => Err(EndpointError::Unreadable(error.to_string())),
        }
    }

    /// Reads a file, and holds `room` until the read has ended. A read goes on when its client disconnects: without
    /// that, the clients that wait would each begin a read into memory that no budget counts.
    async fn read_blob(&self, name: &str, room: &BudgetPermit) -> Result<Option<Bytes>, BlobError> {
        let (blobs, name, room) = (Arc::clone(&self.services.blobs), name.to_owned(), room.clone());
        let (reply, read) = oneshot::channel();
        self.services.runtime.spawn(Box::pin(async move {
            // Without a receiver the bytes are dropped here.
            let _ = reply.send(blobs.get(&name).await);
            drop(room);
        }));
        read.await.unwrap_or_else(|_| Err(BlobError::Io("the read did not finish".to_owned())))
    }

    /// The bytes of a stored output, whose part of the budget is `room`.
    pub(crate) async fn fetch_output(
        &self,
        payload: Payload,
        room: &BudgetPermit,
    ) -> Result<Bytes, EndpointError> {
        if planted(Bug::DamagedOutputServed)
            && let Payload::Blob(reference) = &payload
            && let Ok(Some(bytes)) = self.services.blobs.get(&reference.name).await
        {
            return Ok(bytes);
        }
        self.fetch(payload, room).await
    }

    /// Removes files whose rows are gone. What fails is swept at the next start.
    pub(crate) fn delete_blobs(self: &Arc<Self>, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let ground = Arc::clone(&self.services);
        self.services.runtime.spawn(Box::pin(async move {
            for name in names {
                if let Err(error) = ground.blobs.delete(&name).await {
                    tracing::warn!(%name, %error, "a payload file could not be deleted");
                }
            }
        }));
    }

    /// The name of a new file for a job's output: attempts and progress values must not overwrite each other's.
    pub(crate) fn output_file(&self, job: JobId) -> String {
        let nonce = self.services.runtime.entropy() as u64;
        format!("{}/{job}.output.{nonce:016x}", blob_folder(&self.record()))
    }
}

/// The folder of an endpoint's payload files.
pub(crate) fn blob_folder(record: &Endpoint) -> String {
    record.no.0.to_string()
}
