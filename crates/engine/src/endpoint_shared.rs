//! The state that an endpoint's actor shares with its handles.

mod inputs;
pub(crate) mod requests;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use bytes::Bytes;
use longshore_blobs::BlobError;
use longshore_model::{
    Endpoint, EndpointId, EndpointNo, JobEnd, JobId, JobKey, JobRow, Millis, Submitter, WorkerId,
};
use longshore_planted::{Bug, planted};
use longshore_store::{BlobRef, Payload, WebhookRow};
use tokio::sync::{mpsc, oneshot, watch};

use crate::actor::mailbox::MailboxSender;
use crate::admitted_workers::AdmittedWorkers;
use crate::balancer::Balancer;
use crate::job_feed::JobFeed;
use crate::owner_use::{Use, UseBySubmitter};
use crate::payload_budget::BudgetPermit;
use crate::services::Services;
use crate::stop_signals::StopSignals;
use crate::supervisor::{FleetEvent, FleetStatus};
use crate::traces::{Fact, JobFact, Measured, StartedWorker};
use crate::webhooks::PendingCall;
use crate::webhooks::signing::Secrets;
use crate::{EndpointError, EndpointMetrics, Exemplar, Jobs};

/// The state that the handles and the actor of one endpoint share. One per endpoint; exists while a handle exists, also
/// after the endpoint is deleted.
pub(crate) struct EndpointShared {
    pub(crate) services: Arc<Services>,
    /// Sends requests to the actor of the endpoint.
    pub(crate) requests: MailboxSender,
    pub(crate) stop_signals: StopSignals,
    pub(crate) metrics: EndpointMetrics,
    /// The changes of jobs that no reader of events has taken.
    pub(crate) job_feed: JobFeed,
    /// Jobs whose webhook calls belong to rounds that failed. Such a round may have taken effect all the same.
    unsure_calls: Mutex<BTreeSet<JobKey>>,
    /// Jobs that ended since [`Self::take_job_use`], by submitter.
    job_use: Mutex<BTreeMap<Submitter, Use>>,
    /// The number of workers with a running job, after the last round.
    pub(crate) running_workers: AtomicU32,
    /// The number of workers that the queue knows, after the last round.
    pub(crate) known_workers: AtomicU32,
    /// The number of jobs in memory, in any state, after the last round.
    pub(crate) known_jobs: AtomicU64,
    /// The endpoint is deleted: every request returns [`EndpointError::Deleted`].
    pub(crate) deleted: AtomicBool,
    /// The server stops: takes and waits end immediately.
    pub(crate) stopping: AtomicBool,
    /// Set when the queue is loaded for the first time and payload files without a job are deleted.
    pub(crate) loaded: tokio::sync::SetOnce<()>,
    /// The endpoint's id, which never changes.
    pub(crate) id: EndpointId,
    /// The endpoint's number, which never changes.
    pub(crate) no: EndpointNo,
    record: RwLock<Arc<Endpoint>>,
    /// The secrets that sign webhook calls.
    secrets: RwLock<Arc<Secrets>>,
    /// The supervisor's channel; `None` if no launcher runs the endpoint's workers.
    fleet: Mutex<Option<mpsc::UnboundedSender<FleetEvent>>>,
    /// A [`FleetEvent::Demand`] was sent that the supervisor has not handled.
    load_notified: AtomicBool,
    fleet_status: Mutex<Option<watch::Receiver<FleetStatus>>>,
    /// When the newest managed worker was started, in ms since 1970; 0 before the first one.
    newest_start: AtomicU64,
    /// Forwards requests to the workers; `None` for an endpoint with a queue.
    pub(crate) balancer: Option<Arc<Balancer>>,
    /// The managed workers whose tokens are valid.
    pub(crate) admitted: AdmittedWorkers,
}

impl EndpointShared {
    /// Returns the shared state of an endpoint whose actor receives `requests`. It has no supervisor and no webhook secrets. `this` refers to the returned value.
    pub(crate) fn new(
        services: Arc<Services>,
        record: Endpoint,
        requests: MailboxSender,
        this: &Weak<Self>,
    ) -> Self {
        let balancer = record
            .balances()
            .map(|_| Arc::new(Balancer::new(Weak::clone(this), Arc::clone(&services), &record)));
        Self {
            balancer,
            services,
            requests,
            stop_signals: StopSignals::default(),
            metrics: EndpointMetrics::default(),
            job_feed: JobFeed::default(),
            unsure_calls: Mutex::default(),
            job_use: Mutex::default(),
            running_workers: AtomicU32::new(0),
            known_workers: AtomicU32::new(0),
            known_jobs: AtomicU64::new(0),
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
            newest_start: AtomicU64::new(0),
            admitted: AdmittedWorkers::default(),
        }
    }

    /// The endpoint's record after the last change.
    pub(crate) fn record(&self) -> Arc<Endpoint> {
        self.record.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the endpoint has a webhook for jobs that name none.
    pub(crate) fn has_webhook(&self) -> bool {
        self.record.read().unwrap_or_else(PoisonError::into_inner).webhook.is_some()
    }

    /// Replaces the record. The actor applies its settings with
    /// [`Request::Configure`](crate::actor::request::Request::Configure).
    pub(crate) fn set_record(&self, record: Arc<Endpoint>) {
        *self.record.write().unwrap_or_else(PoisonError::into_inner) = record;
    }

    /// The secrets that sign webhook calls.
    pub(crate) fn secrets(&self) -> Arc<Secrets> {
        self.secrets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the secrets that sign webhook calls.
    pub(crate) fn set_secrets(&self, secrets: Secrets) {
        *self.secrets.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(secrets);
    }

    /// Sets the channels of the supervisor that keeps the endpoint's workers; `None` disconnects it.
    pub(crate) fn set_fleet(
        &self,
        fleet: Option<mpsc::UnboundedSender<FleetEvent>>,
        status: Option<watch::Receiver<FleetStatus>>,
    ) {
        *self.fleet.lock().unwrap_or_else(PoisonError::into_inner) = fleet;
        *self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// Whether the endpoint has a supervisor.
    pub(crate) fn has_fleet(&self) -> bool {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Sends an event to the supervisor, if there is one. [`FleetEvent::Demand`] is sent once until [`Self::load_seen`].
    pub(crate) fn notify_fleet(&self, event: FleetEvent) {
        if matches!(event, FleetEvent::Demand) && self.load_notified.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(fleet) = &*self.fleet.lock().unwrap_or_else(PoisonError::into_inner) {
            // The supervisor ends only with the endpoint or the server.
            let _ = fleet.send(event);
        }
    }

    /// The supervisor is about to read the load: a later change sends [`FleetEvent::Demand`] again.
    pub(crate) fn load_seen(&self) {
        self.load_notified.store(false, Ordering::Release);
    }

    /// The status that the supervisor published last; the default if there is no supervisor.
    pub(crate) fn fleet_status(&self) -> FleetStatus {
        let receiver = self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.as_ref().map(|status| status.borrow().clone()).unwrap_or_default()
    }

    /// The type of a managed worker's first GPU; `None` if it has none, or has exited.
    pub(crate) fn gpu_of(&self, worker: &WorkerId) -> Option<String> {
        let receiver = self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner);
        let status = receiver.as_ref()?.borrow();
        let worker = status.workers.iter().find(|one| one.id == *worker)?;
        worker.placement.gpus.first().map(|gpu| gpu.type_id.clone())
    }

    /// Notes that a managed worker is started.
    pub(crate) fn note_start(&self, at: Millis) {
        self.newest_start.fetch_max(at.0, Ordering::Relaxed);
    }

    /// Whether the worker of a delivered job was started while the job waited.
    pub(crate) fn met_cold_start(&self, row: &JobRow) -> bool {
        // Most jobs are queued after the last start of a worker: they cost one comparison.
        if row.enqueued_at.0 > self.newest_start.load(Ordering::Relaxed) {
            return false;
        }
        let receiver = self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(status) = receiver.as_ref().map(watch::Receiver::borrow) else { return false };
        let worker = status.workers.iter().find(|one| Some(&one.id) == row.worker.as_ref());
        worker.is_some_and(|worker| row.was_waiting_at(worker.placement.started_at))
    }

    /// The statuses of the supervisor as it publishes them; `None` if there is no supervisor.
    pub(crate) fn fleet_statuses(&self) -> Option<watch::Receiver<FleetStatus>> {
        self.fleet_status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Hands parts of traced jobs' lives over, which ended in a durable round.
    pub(crate) fn trace(&self, facts: Vec<JobFact>) {
        let Some(traces) = &self.services.traces else { return };
        let status = self.fleet_status();
        for fact in facts {
            self.exemplify(traces.id(&fact.row), &fact);
            let id = fact.row.worker.as_ref().filter(|_| fact.has_worker());
            let worker = id.and_then(|id| status.workers.iter().find(|worker| worker.id == *id));
            let worker = worker.map(|worker| StartedWorker {
                placement: worker.placement.clone(),
                is_ready: status.facts.worker(&worker.id).is_some_and(|facts| facts.is_ready),
                ready_at: worker.ready_at,
            });
            traces.add(Fact::Job { endpoint: self.record(), worker, fact });
        }
    }

    /// Notes the times of a traced job as examples of the histograms that counted them.
    fn exemplify(&self, trace: [u8; 16], fact: &JobFact) {
        let JobFact { row, until, .. } = fact;
        let (histogram, value) = match fact.measured() {
            Some(Measured::Delay) => (&self.metrics.delay_ms, row.delay_ms()),
            Some(Measured::Execution) => (&self.metrics.execution_ms, row.execution_ms(*until)),
            None => return,
        };
        histogram.exemplify(Exemplar { trace, value, at: *until });
    }

    /// Adds the submitted and ended jobs of a durable round to the use of their owners, and the ended ones to that of their
    /// submitters.
    pub(crate) fn count_use(&self, used: UseBySubmitter) {
        for (submitter, used) in used.into_entries() {
            self.services.owner_use.add(submitter.owner, used);
            if used.ended > 0 {
                let mut job_use = self.job_use.lock().unwrap_or_else(PoisonError::into_inner);
                job_use.entry(submitter).or_default().add(used);
            }
        }
    }

    /// Returns the use by submitter of jobs that ended since the last call.
    pub(crate) fn take_job_use(&self) -> BTreeMap<Submitter, Use> {
        std::mem::take(&mut self.job_use.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The present time by the engine's clock, in ms since the Unix epoch.
    pub(crate) fn now(&self) -> Millis {
        self.services.clock.now()
    }

    /// Schedules a pending webhook call that reports `end`, after `attempts` failed ones, for the time `due_at`.
    pub(crate) fn enqueue_webhook(
        self: &Arc<Self>,
        job: JobId,
        key: JobKey,
        end: JobEnd,
        attempts: u32,
        due_at: Millis,
    ) {
        let handle = Jobs::new(Arc::clone(self));
        self.services.webhooks.enqueue(PendingCall { handle, job, key, end, attempts, due_at });
    }

    /// Notes the webhook calls of a round that failed.
    pub(crate) fn note_unsure_calls(&self, calls: &[(JobId, JobKey, JobEnd, Millis)]) {
        if !calls.is_empty() {
            let mut unsure = self.unsure_calls.lock().unwrap_or_else(PoisonError::into_inner);
            unsure.extend(calls.iter().map(|(_, key, ..)| *key));
        }
    }

    /// Schedules those pending webhook calls whose rounds failed, and took effect: `pending` are the calls in the rows.
    pub(crate) fn enqueue_unsure_calls(self: &Arc<Self>, pending: Vec<(WebhookRow, JobId, JobEnd)>) {
        let unsure = std::mem::take(&mut *self.unsure_calls.lock().unwrap_or_else(PoisonError::into_inner));
        for (call, job, end) in pending {
            if unsure.contains(&call.job) {
                self.enqueue_webhook(job, call.job, end, call.attempts, call.due_at);
            }
        }
    }

    /// Whether the payload is stored as a file of its own: it is longer than `blob_bytes_min`.
    pub(crate) fn is_large(&self, payload: &Bytes) -> bool {
        payload.len() > self.services.settings.blob_bytes_min
    }

    /// Writes a payload to a file whose name begins with `stem`, and returns the durable file's reference.
    ///
    /// # Errors
    ///
    /// `Overloaded` if the payload does not fit in the request budget; `Unavailable` if the file cannot be written.
    pub(crate) async fn put_blob(&self, stem: String, payload: Bytes) -> Result<BlobRef, EndpointError> {
        let permit = self.services.requests.try_take(payload.len()).ok_or(EndpointError::Overloaded)?;
        // Before the queue is loaded, a new file would count as one without a job and be deleted.
        self.loaded.wait().await;
        let reference = BlobRef::new(&stem, &payload);
        let (blobs, name) = (Arc::clone(&self.services.blobs), reference.name.clone());
        let (reply, written) = oneshot::channel();
        // A write in flight goes on when its client disconnects, so a task holds the permit until the write ends.
        self.services.runtime.spawn(Box::pin(async move {
            let written = blobs.put(&name, payload).await;
            drop(permit);
            let _ = reply.send(written);
        }));
        let written =
            written.await.unwrap_or_else(|_| Err(BlobError::Io("the write did not finish".to_owned())));
        written.map_err(|error| EndpointError::Unavailable(error.to_string()))?;
        Ok(reference)
    }

    /// Returns the bytes of a stored payload. `permit` covers them.
    ///
    /// # Errors
    ///
    /// `Damaged` if the file is missing or has other bytes than its reference says; `Unreadable` if it cannot be read now,
    /// and if an object is missing.
    pub(crate) async fn fetch(
        &self,
        payload: Payload,
        permit: &BudgetPermit,
    ) -> Result<Bytes, EndpointError> {
        let reference = match payload {
            Payload::Inline(bytes) => return Ok(bytes),
            Payload::Blob(reference) => reference,
        };
        match self.read_blob(&reference.name, permit).await {
            Ok(Some(bytes)) => match reference.damage(&bytes) {
                None => Ok(bytes),
                Some(damage) => {
                    Err(EndpointError::Damaged(format!("the file `blobs/{}` {damage}", reference.name)))
                }
            },
            Ok(None) if let Some(remote) = self.services.blobs.remote() => {
                // The object may come back, as when a bucket is restored after the rows. So the job waits for it.
                let address = remote.address();
                Err(EndpointError::Unreadable(format!(
                    "the payload `{}` is missing in {address}: restore the bucket to a time after the rows",
                    reference.name
                )))
            }
            Ok(None) => {
                Err(EndpointError::Damaged(format!("the file `blobs/{}` is missing", reference.name)))
            }
            Err(error) => Err(EndpointError::Unreadable(error.to_string())),
        }
    }

    /// Reads a file; `None` if it does not exist. A read in flight goes on when its client disconnects, so a task holds the
    /// permit until the read ends. Otherwise clients that disconnect and repeat the request would cause reads into memory
    /// that no budget counts.
    async fn read_blob(&self, name: &str, permit: &BudgetPermit) -> Result<Option<Bytes>, BlobError> {
        let (blobs, name, permit) = (Arc::clone(&self.services.blobs), name.to_owned(), permit.clone());
        let (reply, read) = oneshot::channel();
        self.services.runtime.spawn(Box::pin(async move {
            // Without a receiver, the bytes are dropped here.
            let _ = reply.send(blobs.get(&name).await);
            drop(permit);
        }));
        read.await.unwrap_or_else(|_| Err(BlobError::Io("the read did not finish".to_owned())))
    }

    /// Returns the bytes of a stored output. `permit` covers them.
    ///
    /// # Errors
    ///
    /// As [`Self::fetch`].
    pub(crate) async fn fetch_output(
        &self,
        payload: Payload,
        permit: &BudgetPermit,
    ) -> Result<Bytes, EndpointError> {
        if planted(Bug::DamagedOutputServed)
            && let Payload::Blob(reference) = &payload
            && let Ok(Some(bytes)) = self.services.blobs.get(&reference.name).await
        {
            return Ok(bytes);
        }
        self.fetch(payload, permit).await
    }

    /// Deletes the files of deleted rows, in a task. A file that cannot be deleted is deleted at the next start, an object by
    /// the next sweep.
    pub(crate) fn delete_blobs(self: &Arc<Self>, names: Vec<String>) {
        if names.is_empty() {
            return;
        }
        let services = Arc::clone(&self.services);
        self.services.runtime.spawn(Box::pin(async move {
            if let Some(remote) = services.blobs.remote() {
                let count = names.len();
                if let Err(error) = remote.delete_all(names).await {
                    tracing::warn!(count, %error, "payload objects not deleted, the sweep deletes them");
                }
                return;
            }
            for name in names {
                if let Err(error) = services.blobs.delete(&name).await {
                    tracing::warn!(%name, %error, "payload file not deleted");
                }
            }
        }));
    }

    /// Returns a new file name for an output or progress value of a job. It has a random part, so that the files of two
    /// attempts differ.
    pub(crate) fn output_file(&self, job: JobId) -> String {
        let nonce = self.services.runtime.entropy() as u64;
        format!("{}/{job}.output.{nonce:016x}", blob_folder(&self.record()))
    }
}

/// The folder of an endpoint's payload files, named after the endpoint's number.
pub(crate) fn blob_folder(record: &Endpoint) -> String {
    record.no.0.to_string()
}
