//! The engine: every endpoint of this server, and the catalog.

mod catalog_changes;
mod fleets;
pub(crate) mod json_rows;
mod keys;
mod owners;
mod registry_auths;
mod start;
pub(crate) mod tokens;
mod volumes;
pub(crate) mod webhooks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use longshore_blobs::Blobs;
use longshore_launch::Launchers;
use longshore_model::{Endpoint, EndpointId, Epoch, Gpu, JobId, Provider, ShardId, Template, TemplateId};
use longshore_store::Store;
use longshore_vault::{Keyring, NoRandom};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::actor::request::Request;
use crate::catalog::Catalog;
use crate::committer::CommitSender;
use crate::endpoint_shared::Services;
use crate::gpu_pool::GpuPool;
use crate::metering::Meter;
use crate::payload_budget::PayloadBudget;
use crate::runtime::{BoxTask, Runtime};
use crate::supervisor::FleetEvent;
use crate::{
    EndpointHandle, EngineMetrics, EngineSettings, WebhookLog, WebhookSettings, WebhookTransport,
    WorkerSettings,
};

/// The parts that an engine is made of.
pub struct EngineParts {
    /// Where rows are kept.
    pub store: Arc<dyn Store>,
    /// Where big payloads are kept.
    pub blobs: Arc<dyn Blobs>,
    /// Run the workers. An endpoint whose provider has no launcher gets none.
    pub launchers: Launchers,
    /// The machine that it runs on.
    pub runtime: Arc<dyn Runtime>,
    /// Who sends webhook calls.
    pub webhook_transport: Arc<dyn WebhookTransport>,
    /// What seals the secrets that the store keeps.
    pub vault: Arc<Keyring>,
    /// Where it is noted what became of them.
    pub webhook_log: Arc<dyn WebhookLog>,
    /// What the operator chose.
    pub settings: EngineSettings,
    /// What the operator chose about webhooks.
    pub webhooks: WebhookSettings,
    /// What the operator chose about workers.
    pub workers: WorkerSettings,
}

/// Every endpoint of this server, and the catalog. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

/// The senders to the supervisors. An endpoint whose provider has changed has one per provider until the workers at the
/// earlier provider are gone.
type FleetSenders = HashMap<(EndpointId, Provider), mpsc::UnboundedSender<FleetEvent>>;

struct EngineInner {
    services: Arc<Services>,
    launchers: Launchers,
    workers: WorkerSettings,
    /// Workers of an earlier server were started for another address than the present one.
    moved: bool,
    fleets: Mutex<FleetSenders>,
    gpu_pool: Arc<GpuPool>,
    meter: Meter,
    catalog: RwLock<Catalog>,
    /// Held while the catalog changes: store first, memory after.
    catalog_lock: tokio::sync::Mutex<()>,
    epochs: Vec<(ShardId, Epoch)>,
    committers: Mutex<HashMap<ShardId, CommitSender>>,
    /// Endpoints whose queue is not loaded yet.
    loading: Arc<AtomicUsize>,
    token_key: ring::hmac::Key,
    /// Of the last job id that was minted here.
    last_tick: AtomicU64,
}

impl Engine {
    /// Mints a job id at the edge. Later ones are larger, so that lists keep the order of arrival.
    pub fn mint_job(&self, sync: bool) -> JobId {
        let now = self.now().0 << 12;
        let next = |last: u64| now.max(last + 1);
        // The closure always answers, so neither case is an error.
        let (Ok(last) | Err(last)) =
            self.inner.last_tick.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        JobId::mint_at(next(last), self.entropy() as u64, sync)
    }

    /// 128 random bits, for ids.
    pub fn entropy(&self) -> u128 {
        self.inner.services.runtime.entropy()
    }

    /// The endpoint with this id or slug.
    pub fn endpoint(&self, id_or_slug: &str) -> Option<EndpointHandle> {
        self.catalog().endpoint(id_or_slug).cloned()
    }

    /// Every endpoint, oldest first.
    pub fn endpoints(&self) -> Vec<EndpointHandle> {
        self.catalog().endpoints().cloned().collect()
    }

    /// Every template, oldest first.
    pub fn templates(&self) -> Vec<Arc<Template>> {
        self.catalog().templates().to_vec()
    }

    /// One template.
    pub fn template(&self, id: &TemplateId) -> Option<Arc<Template>> {
        self.catalog().template(id).cloned()
    }

    /// From the stop signal of a job to SIGTERM for its worker, in milliseconds, as it holds for this endpoint.
    pub fn stop_grace_ms(&self, endpoint: &Endpoint) -> u64 {
        self.inner.services.settings.stop_grace_of(endpoint)
    }

    /// The endpoints that use a template, oldest first.
    pub fn endpoints_using(&self, id: &TemplateId) -> Vec<EndpointHandle> {
        self.catalog().users_of(id)
    }

    /// The GPUs that are shared out among workers, with whether each is free.
    pub fn gpus(&self) -> Vec<(Gpu, bool)> {
        self.inner.gpu_pool.list()
    }

    /// What seals secrets.
    pub fn vault(&self) -> &Keyring {
        &self.inner.services.vault
    }

    /// The member that stands for the `s3Config` of a job, sealed. None if nothing seals.
    pub fn sealed_s3_config(&self, job: JobId, config: &str) -> Result<Option<String>, NoRandom> {
        crate::secrets::sealed(self.vault(), job, config)
    }

    /// Memory for what is on its way to clients.
    pub fn answers(&self) -> &PayloadBudget {
        &self.inner.services.answers
    }

    /// What the engine measured of itself since the start.
    pub fn metrics(&self) -> &EngineMetrics {
        &self.inner.services.metrics
    }

    /// The present time, as the engine sees it.
    pub fn now(&self) -> longshore_model::Millis {
        self.inner.services.clock.now()
    }

    /// Whether every endpoint is loaded.
    pub fn is_ready(&self) -> bool {
        self.inner.loading.load(Ordering::Acquire) == 0
    }

    /// Answers everybody who waits with what there is, and lets nobody wait any more. Workers go on; what was
    /// acknowledged is durable already.
    pub async fn release_waits(&self) {
        let mut answers = Vec::new();
        for handle in self.endpoints() {
            handle.shared.stopping.store(true, Ordering::Release);
            handle.shared.notify_fleet(FleetEvent::Shutdown);
            let (reply, answer) = tokio::sync::oneshot::channel();
            // An actor that is gone holds nobody.
            if handle.shared.requests.send(Request::ReleaseWaits { reply }).is_ok() {
                answers.push(answer);
            }
        }
        for answer in answers {
            let _ = answer.await;
        }
    }

    /// Lets the shards go, after [`Engine::release_waits`] and when no request is open any more.
    pub async fn close(&self) {
        let epochs = self.inner.epochs.clone();
        let released =
            tokio::time::timeout(Duration::from_secs(2), self.inner.services.store.release_shards(epochs));
        match released.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the shards could not be released"),
            Err(_) => tracing::warn!("the store did not release the shards in time"),
        }
    }

    /// Starts a task that goes on whatever becomes of its caller.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let task: BoxTask = Box::pin(task);
        self.inner.services.runtime.spawn(task)
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.inner.meter
    }

    fn catalog(&self) -> RwLockReadGuard<'_, Catalog> {
        self.inner.catalog.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn catalog_mut(&self) -> RwLockWriteGuard<'_, Catalog> {
        self.inner.catalog.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch(&self, shard: ShardId) -> Epoch {
        self.inner.epochs[usize::from(shard.0)].1
    }

    /// The committer of a shard; started with its first endpoint.
    fn committer(&self, shard: ShardId) -> CommitSender {
        let mut committers = self.inner.committers.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || {
            let ground = &self.inner.services;
            let (store, metrics) = (Arc::clone(&ground.store), Arc::clone(&ground.metrics));
            let (sender, committer) = crate::committer::prepare(store, shard, self.epoch(shard), metrics);
            self.spawn(committer.run());
            sender
        };
        committers.entry(shard).or_insert_with(start).clone()
    }
}
