//! An engine on stores in memory, and short functions for the requests of clients and workers.

use std::collections::BTreeMap;
use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::{
    BlobError, BlobFuture, BlobListing, Blobs, MemoryBlobs, RemoteBlobs, RemoteHealth, StoredBlob,
};
use longshore_engine::{
    CatalogError, EndpointHandle, Engine, EngineParts, EngineSettings, HttpTransport, JobSnapshot,
    MemoryWebhookLog, Outcome, Runtime, Submission, TakeRequest, TakenJob, TokioRuntime, WebhookSettings,
    WebhookTransport, WorkerSettings,
};
use longshore_model::{
    Counters, Durability, EndedAttempt, Endpoint, EndpointId, EndpointNo, Epoch, JobId, JobKey, JobRow,
    Millis, RegistryAuth, RegistryAuthId, ShardId, Submitter, Template, TemplateId, WorkerId,
};
use longshore_store::{
    Batch, Catalog, ChunkRow, CommitChains, MemoryStore, OutcomeRow, Payload, Store, StoreError, StoreFuture,
    StreamRow, WebhookRow,
};
use longshore_vault::Keyring;
use serde_json::json;
use tokio::sync::{mpsc, watch};

/// The stores and the clock of a computer. They survive an engine.
pub(crate) struct Disks {
    pub(crate) store: Arc<BreakableStore>,
    pub(crate) blobs: Arc<SlowBlobs>,
    pub(crate) clock: Arc<JumpingClock>,
    /// Memory for payloads that are read for clients, and as much for workers, in bytes.
    pub(crate) budget_bytes: usize,
}

impl Disks {
    pub(crate) fn new() -> Self {
        Self {
            store: Arc::default(),
            blobs: Arc::default(),
            clock: Arc::default(),
            budget_bytes: 128_000_000,
        }
    }

    /// The stores as a power cut leaves them: buffered commits since the last synced one are lost. The engine that uses these
    /// stores does not notice.
    pub(crate) fn after_power_cut(&self) -> Self {
        let synced = self.store.synced.lock().unwrap().clone();
        let store = BreakableStore { inner: synced, ..BreakableStore::default() };
        Self {
            store: Arc::new(store),
            blobs: self.blobs.clone(),
            clock: self.clock.clone(),
            budget_bytes: self.budget_bytes,
        }
    }

    /// Starts an engine on these stores and waits until it is ready.
    pub(crate) async fn start(&self) -> Engine {
        self.start_with(Arc::new(HttpTransport::new(&WebhookSettings::default()))).await
    }

    /// Starts an engine that sends webhook calls by `transport`.
    pub(crate) async fn start_with(&self, transport: Arc<dyn WebhookTransport>) -> Engine {
        let engine = self.try_start(transport, Arc::default()).await.unwrap();
        eventually(async || engine.is_ready()).await;
        engine
    }

    /// Starts an engine that seals secrets under the keys of `keyring`.
    pub(crate) async fn start_sealing(&self, keyring: &Keyring) -> Result<Engine, StoreError> {
        let transport = Arc::new(HttpTransport::new(&WebhookSettings::default()));
        let engine = self.try_start(transport, Arc::new(keyring.clone())).await?;
        eventually(async || engine.is_ready()).await;
        Ok(engine)
    }

    pub(crate) async fn try_start(
        &self,
        webhook_transport: Arc<dyn WebhookTransport>,
        vault: Arc<Keyring>,
    ) -> Result<Engine, StoreError> {
        let parts = EngineParts {
            store: self.store.clone(),
            blobs: self.blobs.clone(),
            launchers: BTreeMap::new(),
            runtime: self.clock.clone(),
            webhook_transport,
            vault,
            webhook_log: Arc::new(MemoryWebhookLog::default()),
            settings: EngineSettings {
                blob_bytes_min: 1000,
                answer_bytes_max: self.budget_bytes,
                input_bytes_max: self.budget_bytes,
                ..EngineSettings::default()
            },
            webhooks: WebhookSettings::default(),
            workers: WorkerSettings::default(),
            traces: None,
        };
        Engine::start(parts).await
    }
}

/// Blobs whose reads can be paused. A read continues when its reader is dropped, as the read of a file does.
#[derive(Default)]
pub(crate) struct SlowBlobs {
    blobs: Arc<MemoryBlobs>,
    pub(crate) paused: watch::Sender<bool>,
    /// The number of reads that began.
    pub(crate) reads: AtomicU64,
    /// Set for blobs outside of the computer.
    pub(crate) remote: OnceLock<FakeRemote>,
}

/// The time of a [`FakeRemote`], in ms.
const REMOTE_NOW_MS: u64 = 100_000_000;

/// What blobs outside of the computer have besides.
#[derive(Default)]
pub(crate) struct FakeRemote {
    /// The names of blobs that were put two hours ago. The others were put now.
    pub(crate) old: Arc<Mutex<HashSet<String>>>,
    /// The installation that has claimed the place.
    pub(crate) installation: Mutex<Option<String>>,
    /// How many listings wait, because of a test that wants it so.
    pub(crate) waiting: watch::Sender<usize>,
    /// Whether listings wait.
    pub(crate) is_held: watch::Sender<bool>,
}

impl RemoteBlobs for SlowBlobs {
    fn address(&self) -> &'static str {
        "s3://fake"
    }

    fn claim(&self, installation: &str, is_new: bool) -> BlobFuture<'_, ()> {
        let remote = self.remote.get().unwrap();
        let mut claimed = remote.installation.lock().unwrap();
        if is_new && claimed.is_none() {
            *claimed = Some(installation.to_owned());
        }
        let is_own = claimed.as_deref() == Some(installation);
        let result = if is_own { Ok(()) } else { Err(BlobError::Place("of another one".to_owned())) };
        Box::pin(ready(result))
    }

    fn listing(&self) -> BlobListing {
        let remote = self.remote.get().unwrap();
        let (blobs, old) = (Arc::clone(&self.blobs), Arc::clone(&remote.old));
        let (sender, listing) = mpsc::channel(1);
        let mut held = remote.is_held.subscribe();
        remote.waiting.send_modify(|waiting| *waiting += 1);
        tokio::spawn(async move {
            let _ = held.wait_for(|held| !held).await;
            let old = old.lock().unwrap().clone();
            for folder in blobs.folders().await.unwrap() {
                let modified_ms = |name: &String| {
                    if old.contains(name) { REMOTE_NOW_MS - 7_200_000 } else { REMOTE_NOW_MS }
                };
                let names = blobs.list(&folder).await.unwrap().into_iter();
                let page = names.map(|name| StoredBlob { modified_ms: modified_ms(&name), name }).collect();
                let _ = sender.send(Ok(page)).await;
            }
        });
        listing
    }

    fn delete_all(&self, names: Vec<String>) -> BlobFuture<'_, ()> {
        Box::pin(async move {
            for name in names {
                self.blobs.delete(&name).await?;
            }
            Ok(())
        })
    }

    fn clock_ms(&self) -> BlobFuture<'_, u64> {
        Box::pin(ready(Ok(REMOTE_NOW_MS)))
    }

    fn health(&self) -> RemoteHealth {
        RemoteHealth::default()
    }
}

impl Blobs for SlowBlobs {
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()> {
        self.blobs.put(name, bytes)
    }

    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let (blobs, name, mut paused) = (Arc::clone(&self.blobs), name.to_owned(), self.paused.subscribe());
        let read = tokio::spawn(async move {
            let _ = paused.wait_for(|paused| !paused).await;
            blobs.get(&name).await
        });
        Box::pin(async { read.await.unwrap() })
    }

    fn delete(&self, name: &str) -> BlobFuture<'_, ()> {
        self.blobs.delete(name)
    }

    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>> {
        self.blobs.list(folder)
    }

    fn folders(&self) -> BlobFuture<'_, Vec<String>> {
        self.blobs.folders()
    }

    fn remote(&self) -> Option<&dyn RemoteBlobs> {
        self.remote.get().map(|_| self as &dyn RemoteBlobs)
    }
}

/// Longest wait of a test for a condition; then the test fails.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Waits until a condition is true.
pub(crate) async fn eventually(condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.expect("the condition is true in time");
}

/// A change of a resource that is never rejected.
pub(crate) fn accept<T>(
    change: impl FnOnce(&mut T) + Send,
) -> impl FnOnce(&mut T) -> Result<(), CatalogError> + Send {
    |resource| {
        change(resource);
        Ok(())
    }
}

/// An engine with the endpoint `demo`, whose workers are external.
pub(crate) async fn one_endpoint(disks: &Disks) -> (Engine, EndpointHandle) {
    let engine = disks.start().await;
    let template = engine.catalog().create_template(template("t")).await.unwrap();
    let record = engine.create_endpoint(endpoint(template.id, "demo")).await.unwrap();
    let handle = engine.endpoint(record.id.as_str()).unwrap();
    (engine, handle)
}

/// A template whose id is derived from its name.
pub(crate) fn template(name: &str) -> Template {
    let entropy = name.bytes().fold(1_u128, |sum, byte| sum * 31 + u128::from(byte));
    Template {
        id: TemplateId::mint(entropy),
        name: name.to_owned(),
        image_name: "none".to_owned(),
        docker_entrypoint: vec![],
        docker_start_cmd: vec!["true".to_owned()],
        workdir: None,
        env: [].into(),
        category: "CPU".to_owned(),
        container_disk_in_gb: 1,
        container_registry_auth_id: None,
        is_public: false,
        is_serverless: true,
        ports: vec![],
        readme: String::new(),
        volume_in_gb: 0,
        volume_mount_path: String::new(),
        endpoints: longshore_model::SharedWith::default(),
        created_at: Millis(0),
    }
}

/// An endpoint with external workers whose id is derived from its slug.
/// Credentials for a registry, with an id of this number.
pub(crate) fn credentials(number: u128, name: &str) -> RegistryAuth {
    RegistryAuth {
        id: RegistryAuthId::mint(number),
        name: name.to_owned(),
        username: "u".to_owned(),
        password: "p".to_owned(),
        endpoints: longshore_model::SharedWith::default(),
        created_at: Millis(0),
    }
}

pub(crate) fn endpoint(template_id: TemplateId, slug: &str) -> Endpoint {
    let entropy = slug.bytes().fold(7_u128, |sum, byte| sum * 31 + u128::from(byte));
    let record = json!({
        "id": EndpointId::mint(entropy), "no": 0, "name": slug, "slug": slug, "templateId": template_id,
        "workersMin": 0, "workersMax": 3, "idleTimeout": 5, "scalerType": "QUEUE_DELAY", "scalerValue": 4,
        "executionTimeoutMs": 600_000, "maxRetries": 2, "retryOn": ["workerLost"], "resultRetentionMs": 60_000,
        "syncResultRetentionMs": 60_000, "provider": "external", "maxConcurrency": 1, "flashboot": true,
        "computeType": "CPU", "gpuCount": 1, "vcpuCount": 2, "version": 1, "createdAt": 0,
    });
    serde_json::from_value(record).unwrap()
}

/// A submit of a job with this input.
pub(crate) fn job(engine: &Engine, input: &str) -> Submission {
    Submission {
        id: engine.mint_job(false),
        members: Bytes::from(format!(r#""input":{input}"#)),
        webhook: false,
        low_priority: false,
        execution_timeout_ms: None,
        ttl_ms: None,
        idempotency: None,
        submitter: Submitter::default(),
        trace: None,
    }
}

pub(crate) fn worker(name: &str) -> WorkerId {
    name.parse().unwrap()
}

/// Takes one job at most.
pub(crate) async fn take(handle: &EndpointHandle, name: &str, hold_ms: u64) -> Vec<TakenJob> {
    let request = TakeRequest { slots: 1, says_busy: None, hold_ms, address: None };
    handle.workers().take(worker(name), request).await.unwrap()
}

/// Reports the result of a job.
pub(crate) async fn done(handle: &EndpointHandle, name: &str, job: JobId, output: &str) {
    let output = Some(Bytes::from(output.to_owned()));
    handle.workers().report(worker(name), job, Outcome::Completed { output }).await.unwrap();
}

/// The output of a job as text; empty without one.
pub(crate) fn output(job: &JobSnapshot) -> &str {
    std::str::from_utf8(job.output.as_deref().unwrap_or_default()).unwrap()
}

/// A clock that can jump ahead, as it does when a suspended computer resumes.
#[derive(Default)]
pub(crate) struct JumpingClock {
    ahead_ms: AtomicU64,
}

impl JumpingClock {
    pub(crate) fn jump(&self, ms: u64) {
        self.ahead_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Runtime for JumpingClock {
    fn wall_clock(&self) -> Millis {
        TokioRuntime.wall_clock() + self.ahead_ms.load(Ordering::SeqCst)
    }
}

/// A memory store whose commits and reads can fail, be held or be slow.
#[derive(Default)]
pub(crate) struct BreakableStore {
    inner: MemoryStore,
    /// The rows at the last synced commit.
    synced: Mutex<MemoryStore>,
    broken: AtomicBool,
    chains: Mutex<CommitChains>,
    /// Commits wait before they take effect.
    held: watch::Sender<bool>,
    /// The number of commits that began.
    pub(crate) commits: AtomicU64,
    commit_ms: AtomicU64,
    read_ms: AtomicU64,
    /// Jobs whose payloads cannot be read, with the error.
    unreadable: Mutex<HashMap<JobKey, StoreError>>,
    /// No payload can be read.
    all_unreadable: AtomicBool,
    /// The number of reads of inputs.
    pub(crate) inputs: AtomicU64,
    /// The number of reads of outcomes and chunks.
    pub(crate) reads: AtomicU64,
    /// The writes in the largest batch so far.
    pub(crate) largest: AtomicU64,
}

impl BreakableStore {
    /// Sets whether commits fail.
    pub(crate) fn set_broken(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// Sets the error with which reads of this job's payloads fail; `None`: they succeed.
    pub(crate) fn set_unreadable(&self, job: JobKey, error: Option<StoreError>) {
        let mut unreadable = self.unreadable.lock().unwrap();
        match error {
            Some(error) => _ = unreadable.insert(job, error),
            None => _ = unreadable.remove(&job),
        }
    }

    /// Sets whether every read of a payload fails.
    pub(crate) fn set_all_unreadable(&self, unreadable: bool) {
        self.all_unreadable.store(unreadable, Ordering::SeqCst);
    }

    fn check_readable(&self, job: JobKey) -> Result<(), StoreError> {
        if self.all_unreadable.load(Ordering::SeqCst) {
            return Err(StoreError::Io("input/output error".to_owned()));
        }
        self.unreadable.lock().unwrap().get(&job).map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Sets whether commits wait, also those that will fail.
    pub(crate) fn set_held(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Sets how long a commit takes.
    pub(crate) fn set_commit_ms(&self, ms: u64) {
        self.commit_ms.store(ms, Ordering::SeqCst);
    }

    /// Sets the delay before an outcome or chunks are read.
    pub(crate) fn set_read_ms(&self, ms: u64) {
        self.read_ms.store(ms, Ordering::SeqCst);
    }

    /// Counts a read of an outcome or of chunks, and delays it.
    async fn begin_read(&self) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        wait_for_disk(Duration::from_millis(self.read_ms.load(Ordering::SeqCst))).await;
    }
}

/// The duration of a disk access: what happens meanwhile is what the tests are about.
async fn wait_for_disk(duration: Duration) {
    tokio::time::sleep(duration).await;
}

impl Store for BreakableStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        self.inner.claim_shards(shards)
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        self.inner.release_shards(shards)
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        let mut chains = self.chains.lock().unwrap();
        let mut admitted = chains.check(shard, batch.chain);
        if self.broken.load(Ordering::SeqCst) {
            let error = StoreError::Full("no space left".to_owned());
            chains.fail(shard, batch.chain, &error);
            admitted = Err(error);
        }
        drop(chains);
        self.commits.fetch_add(1, Ordering::SeqCst);
        let mut held = self.held.subscribe();
        if let Err(error) = admitted {
            return Box::pin(async move {
                let _ = held.wait_for(|held| !held).await;
                Err(error)
            });
        }
        self.largest.fetch_max(batch.writes.len() as u64, Ordering::SeqCst);
        let duration = Duration::from_millis(self.commit_ms.load(Ordering::SeqCst));
        Box::pin(async move {
            let _ = held.wait_for(|held| !held).await;
            wait_for_disk(duration).await;
            let durability = batch.durability;
            self.inner.commit(shard, epoch, batch).await?;
            if durability == Durability::Synced {
                *self.synced.lock().unwrap() = self.inner.clone();
            }
            Ok(())
        })
    }

    fn catalog(&self) -> StoreFuture<'_, Catalog> {
        self.inner.catalog()
    }

    fn counters(&self, endpoint: EndpointNo) -> StoreFuture<'_, Counters> {
        self.inner.counters(endpoint)
    }

    fn jobs(&self, endpoint: EndpointNo, after_seq: u64, limit: usize) -> StoreFuture<'_, Vec<JobRow>> {
        self.inner.jobs(endpoint, after_seq, limit)
    }

    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>> {
        self.inner.webhooks(endpoint)
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        self.inputs.fetch_add(1, Ordering::SeqCst);
        match self.check_readable(job) {
            Ok(()) => self.inner.input(job),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        Box::pin(async move {
            self.begin_read().await;
            self.check_readable(job)?;
            self.inner.outcome(job).await
        })
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        self.inner.attempts(job)
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        self.inner.stream(job)
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(async move {
            self.begin_read().await;
            self.check_readable(job)?;
            self.inner.chunks(job, offset, bytes_max).await
        })
    }
}
