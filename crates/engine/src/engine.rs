//! The engine: start and shutdown, the endpoints of this server, and the interfaces to everything else.

mod blob_sweep;
pub(crate) mod deployments;
mod draining;
mod endpoints;
mod explain;
mod fleets;
pub(crate) mod memory;
pub(crate) mod payload_place;
mod start;
mod traces;
pub(crate) mod worker_tokens;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use longshore_blobs::{Blobs, RemoteBlobs, RemoteHealth};
use longshore_fleet::ProviderFault;
use longshore_history::GpuUse;
use longshore_launch::{Launchers, WorkerUsage};
use longshore_model::{Endpoint, EndpointId, Epoch, JobId, Millis, Provider, ShardId, WorkerId};
use longshore_store::Store;
use longshore_vault::{Keyring, NoRandom};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::actor::request::Request;
use crate::bulk::BulkTasks;
use crate::committer::CommitSender;
use crate::gpu_pool::{GpuPool, GpuStatus};
use crate::metering::Meter;
use crate::payload_budget::PayloadBudget;
use crate::runtime::{BoxTask, Runtime};
use crate::services::Services;
use crate::supervisor::FleetEvent;
use crate::{
    Catalog, EndpointHandle, EngineMetrics, EngineSettings, Keys, PausedReceiver, Sessions, TraceExport,
    WebhookLog, WebhookSettings, WebhookTransport, WorkerSettings,
};

/// How long [`Engine::close`] waits for the store.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The parts that an engine is made of.
pub struct EngineParts {
    /// Stores the rows. The engine claims all of its shards.
    pub store: Arc<dyn Store>,
    /// Stores large payloads as files.
    pub blobs: Arc<dyn Blobs>,
    /// Run the workers, one launcher for each provider. An endpoint whose provider has no launcher has no managed
    /// workers.
    pub launchers: Launchers,
    /// The clocks, the random bits and the tasks of the engine.
    pub runtime: Arc<dyn Runtime>,
    /// Sends webhook calls to their receivers.
    pub webhook_transport: Arc<dyn WebhookTransport>,
    /// Encrypts the secrets in the store.
    pub vault: Arc<Keyring>,
    /// Stores the attempts of webhook calls, for operators to read.
    pub webhook_log: Arc<dyn WebhookLog>,
    /// The operator's settings of queues and payloads.
    pub settings: EngineSettings,
    /// The operator's settings of webhook calls.
    pub webhooks: WebhookSettings,
    /// The operator's settings of managed workers.
    pub workers: WorkerSettings,
    /// The collector of traces; `None` for a server without traces.
    pub traces: Option<TraceExport>,
}

/// The engine of one server. A clone is another handle of the same engine.
///
/// Use it from [`Engine::start`] until [`Engine::release_waits`] and [`Engine::close`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

/// The senders to the supervisors. An endpoint whose provider has changed has one per provider until the workers at the
/// earlier provider have ended.
type FleetSenders = HashMap<(EndpointId, Provider), mpsc::UnboundedSender<FleetEvent>>;

struct EngineInner {
    services: Arc<Services>,
    catalog: Catalog,
    keys: Keys,
    sessions: Sessions,
    bulk: BulkTasks,
    launchers: Launchers,
    workers: WorkerSettings,
    /// Whether the workers of an earlier server that do not say for which address they were started were started for another
    /// one than the present one.
    moved: bool,
    fleets: Mutex<FleetSenders>,
    /// The providers whose workers are not adopted yet. The value says why the last adoption failed; `None` before it ended.
    not_adopted: Mutex<BTreeMap<Provider, Option<ProviderFault>>>,
    gpu_pool: Arc<GpuPool>,
    started_at: Millis,
    meter: Meter,
    /// The claimed shards, in the order of their numbers.
    epochs: Vec<(ShardId, Epoch)>,
    committers: Mutex<HashMap<ShardId, CommitSender>>,
    /// The server stops: every wait ends.
    is_stopping: AtomicBool,
    /// The number of endpoints whose queue is not loaded yet.
    loading: Arc<AtomicUsize>,
    /// The secret of this installation, from which worker tokens are derived.
    token_key: ring::hmac::Key,
    /// The time part of the last generated job id.
    last_tick: AtomicU64,
}

impl Engine {
    /// The endpoint with this id or slug; `None` also for a deleted one.
    pub fn endpoint(&self, id_or_slug: &str) -> Option<EndpointHandle> {
        self.catalog().endpoint(id_or_slug)
    }

    /// Every endpoint that is not deleted, oldest first.
    pub fn endpoints(&self) -> Vec<EndpointHandle> {
        self.catalog().endpoints()
    }

    /// The templates, network volumes, registry credentials and webhook secrets.
    pub fn catalog(&self) -> &Catalog {
        &self.inner.catalog
    }

    /// The API keys and their owners.
    pub fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// The sessions of the console.
    pub fn sessions(&self) -> &Sessions {
        &self.inner.sessions
    }

    /// The bulk tasks of all endpoints.
    pub fn bulk(&self) -> &BulkTasks {
        &self.inner.bulk
    }

    /// Generates a job id. `sync` marks it as submitted to `/runsync`. Later ids of this engine are larger, so that
    /// lists keep the order of submission.
    pub fn mint_job(&self, sync: bool) -> JobId {
        let now = self.now().0 << 12;
        let next = |last: u64| now.max(last + 1);
        // The closure always returns a value, so neither case is an error.
        let (Ok(last) | Err(last)) =
            self.inner.last_tick.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        JobId::mint_at(next(last), self.entropy() as u64, sync)
    }

    /// 128 random bits, fit for secrets.
    pub fn entropy(&self) -> u128 {
        self.inner.services.runtime.entropy()
    }

    /// The engine's time. It never goes back.
    pub fn now(&self) -> Millis {
        self.inner.services.clock.now()
    }

    /// The time from a stop signal to SIGTERM for a worker of this endpoint, in ms: its own setting or the server's.
    pub fn stop_grace_ms(&self, endpoint: &Endpoint) -> u64 {
        self.inner.services.settings.stop_grace_of(endpoint)
    }

    /// Sets whether the changes of jobs are collected for [`EndpointHandle::take_job_changes`]. While they are not, they
    /// cost nothing. Off at the start.
    ///
    /// A reply to a query that is sent after this call has every change that was not collected.
    pub fn watch_jobs(&self, is_watched: bool) {
        self.inner.services.feeds.set(is_watched);
    }

    /// Returns the endpoints whose webhook calls were tried since the last call of this method. There is one caller.
    pub fn take_webhook_changes(&self) -> BTreeSet<EndpointId> {
        self.inner.services.webhook_log.take_changed()
    }

    /// Whether the server stops: [`Engine::release_waits`] was called.
    pub fn is_stopping(&self) -> bool {
        self.inner.is_stopping.load(Ordering::Acquire)
    }

    /// The GPUs that workers can get, their holders, and the endpoints that wait for them.
    pub fn gpus(&self) -> GpuStatus {
        self.inner.gpu_pool.status()
    }

    /// How much the GPUs of each endpoint's workers compute, as the driver said last.
    pub(crate) fn gpu_uses(&self) -> BTreeMap<EndpointId, GpuUse> {
        self.inner.gpu_pool.use_by_endpoint()
    }

    /// What the running workers of the endpoint's provider use of their computer. Empty if the launcher cannot say.
    pub async fn worker_usage(&self, endpoint: &Endpoint) -> HashMap<WorkerId, WorkerUsage> {
        let Some(launcher) = self.inner.launchers.get(&endpoint.provider) else { return HashMap::new() };
        launcher.usage().await.unwrap_or_default()
    }

    /// The providers whose endpoints get workers here: those with a launcher, and [`Provider::External`]. Ascending.
    pub fn providers(&self) -> Vec<Provider> {
        let mut providers: Vec<Provider> = self.inner.launchers.keys().copied().collect();
        providers.push(Provider::External);
        providers.sort_unstable();
        providers.dedup();
        providers
    }

    /// The member of a job's JSON object that has its `s3Config` encrypted; `None` if the vault has no key, and the
    /// config is stored as it is.
    ///
    /// # Errors
    ///
    /// [`NoRandom`] if the operating system provides no random bytes.
    pub fn sealed_s3_config(&self, job: JobId, config: &str) -> Result<Option<String>, NoRandom> {
        crate::secrets::sealed(&self.inner.services.vault, job, config)
    }

    /// Whether webhook calls to this address are allowed, as far as is known before its host name is resolved. `false`
    /// if the operator forbids private addresses and this is one.
    pub fn may_call_webhook(&self, target: &Uri) -> bool {
        self.inner.services.webhooks.may_call(target)
    }

    /// The receivers of webhooks with an open circuit breaker: their last calls had no response.
    pub fn paused_receivers(&self) -> Vec<PausedReceiver> {
        self.inner.services.webhooks.paused_receivers(self.now())
    }

    /// How the calls of the object storage went; `None` if payloads are on this computer.
    pub fn storage_health(&self) -> Option<RemoteHealth> {
        self.inner.services.blobs.remote().map(RemoteBlobs::health)
    }

    /// The number of webhook calls that are neither accepted nor given up.
    pub fn pending_webhooks(&self) -> usize {
        self.inner.services.webhooks.pending()
    }

    /// The memory for payloads that are in flight to clients.
    pub fn answers(&self) -> &PayloadBudget {
        &self.inner.services.answers
    }

    /// The measurements of the engine since its start.
    pub fn metrics(&self) -> &EngineMetrics {
        &self.inner.services.metrics
    }

    /// Whether the queues of all endpoints that existed at the start are loaded.
    pub fn is_ready(&self) -> bool {
        self.inner.loading.load(Ordering::Acquire) == 0
    }

    /// Why the store cannot write; `None` if its last commit succeeded. After a failed commit, a call writes a setting
    /// again to find out, at most once per second.
    pub async fn store_fault(&self) -> Option<String> {
        let health = &self.inner.services.store_health;
        health.fault(self.now())?;
        if health.may_try(self.now()) {
            // The result is noted in `health`.
            let _ = self.catalog().commit(vec![start::put_workers_url(&self.inner.workers.base_url)]).await;
        }
        health.fault(self.now()).map(|(error, _)| error)
    }

    /// Ends every wait: takes return no job, and other waits the job in its present state. Later waits end immediately.
    /// Supervisors stop, and their workers continue.
    pub async fn release_waits(&self) {
        self.inner.is_stopping.store(true, Ordering::Release);
        let mut released = Vec::new();
        for handle in self.endpoints() {
            handle.shared().stopping.store(true, Ordering::Release);
            handle.shared().notify_fleet(FleetEvent::Shutdown);
            let (reply, replied) = tokio::sync::oneshot::channel();
            // An actor that has ended holds no waits.
            if handle.shared().requests.send(Request::ReleaseWaits { reply }).is_ok() {
                released.push(replied);
            }
        }
        for replied in released {
            let _ = replied.await;
        }
    }

    /// Gives up the shards, so that later commits of this engine fail. Call it after [`Engine::release_waits`], when no
    /// request is in progress. Waits at most 2 s for the collector of traces, and 2 s for the store; a failure is logged.
    pub async fn close(&self) {
        if let Some(traces) = &self.inner.services.traces {
            traces.flush(CLOSE_TIMEOUT).await;
        }
        let epochs = self.inner.epochs.clone();
        let released = tokio::time::timeout(CLOSE_TIMEOUT, self.inner.services.store.release_shards(epochs));
        match released.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the shards could not be released"),
            Err(_) => tracing::warn!("the store did not release the shards in time"),
        }
    }

    /// Starts a task that continues when its caller is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let task: BoxTask = Box::pin(task);
        self.inner.services.runtime.spawn(task)
    }

    /// What all endpoints share.
    pub(crate) fn services(&self) -> &Services {
        &self.inner.services
    }

    /// Counts the time of workers and the use of jobs.
    pub(crate) fn meter(&self) -> &Meter {
        &self.inner.meter
    }

    /// The epoch under which this server owns the shard.
    fn epoch(&self, shard: ShardId) -> Epoch {
        self.inner.epochs[usize::from(shard.0)].1
    }

    /// The committer of a shard. It is started with the first endpoint of the shard.
    fn committer(&self, shard: ShardId) -> CommitSender {
        let mut committers = self.inner.committers.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let services = &self.inner.services;
            let (store, metrics) = (Arc::clone(&services.store), Arc::clone(&services.metrics));
            let health = Arc::clone(&services.store_health);
            let (sender, committer) =
                crate::committer::prepare(store, shard, self.epoch(shard), metrics, health);
            self.spawn(committer.run());
            sender
        };
        committers.entry(shard).or_insert_with(start).clone()
    }
}
