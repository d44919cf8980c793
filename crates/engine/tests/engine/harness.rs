//! An engine to test on, and short words for what clients and workers do.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::{BlobFuture, Blobs, MemoryBlobs};
use longshore_engine::{
    CatalogError, EndpointHandle, Engine, EngineParts, EngineSettings, HttpTransport, JobSnapshot,
    MemoryWebhookLog, Outcome, Runtime, Submission, TakeRequest, TakenJob, TokioRuntime, WebhookSettings,
    WebhookTransport, WorkerSettings,
};
use longshore_model::{
    ComputeType, Counters, Durability, Endpoint, EndpointId, EndpointNo, Epoch, JobId, JobKey, JobRow,
    Millis, Provider, RetryOn, ScalerType, ShardId, Submitter, Template, TemplateId, WorkerId,
};
use longshore_store::{
    Batch, Catalog, ChunkRow, CommitChains, MemoryStore, OutcomeRow, Payload, Store, StoreError, StoreFuture,
    StreamRow, WebhookRow,
};
use longshore_vault::Keyring;
use tokio::sync::watch;

/// Stores that survive the engine, as disks do.
pub(crate) struct Disks {
    pub(crate) store: Arc<BreakableStore>,
    pub(crate) blobs: Arc<SlowBlobs>,
    pub(crate) clock: Arc<JumpingClock>,
    /// For what is read for clients, and as much for workers.
    pub(crate) room_bytes: usize,
}

impl Disks {
    pub(crate) fn new() -> Self {
        Self { store: Arc::default(), blobs: Arc::default(), clock: Arc::default(), room_bytes: 128_000_000 }
    }

    /// Starts an engine on the disks and waits until it is ready.
    pub(crate) async fn start(&self) -> Engine {
        self.start_with(Arc::new(HttpTransport::new(&WebhookSettings::default()))).await
    }

    /// The same; webhook calls go to `webhook_transport`.
    pub(crate) async fn start_with(&self, post: Arc<dyn WebhookTransport>) -> Engine {
        let engine = self.try_start(post, Arc::default()).await.unwrap();
        eventually(async || engine.is_ready()).await;
        engine
    }

    /// The same with the keys of secrets, or why not.
    pub(crate) async fn start_sealing(&self, vault: &Keyring) -> Result<Engine, StoreError> {
        let post = Arc::new(HttpTransport::new(&WebhookSettings::default()));
        let engine = self.try_start(post, Arc::new(vault.clone())).await?;
        eventually(async || engine.is_ready()).await;
        Ok(engine)
    }

    async fn try_start(
        &self,
        post: Arc<dyn WebhookTransport>,
        vault: Arc<Keyring>,
    ) -> Result<Engine, StoreError> {
        let parts = EngineParts {
            store: self.store.clone(),
            blobs: self.blobs.clone(),
            launchers: BTreeMap::new(),
            runtime: self.clock.clone(),
            webhook_transport: post,
            vault,
            webhook_log: Arc::new(MemoryWebhookLog::default()),
            settings: EngineSettings {
                blob_bytes_min: 1000,
                answer_bytes_max: self.room_bytes,
                input_bytes_max: self.room_bytes,
                ..EngineSettings::default()
            },
            webhooks: WebhookSettings::default(),
            workers: WorkerSettings::default(),
        };
        Engine::start(parts).await
    }
}

/// Blobs whose reads wait while they are paused, and go on when their reader has gone, as those of a file do.
#[derive(Default)]
pub(crate) struct SlowBlobs {
    blobs: Arc<MemoryBlobs>,
    pub(crate) paused: watch::Sender<bool>,
    /// Reads that have begun.
    pub(crate) reads: AtomicU64,
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
}

/// A test that waits for longer than this waits for nothing.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Waits for a condition.
pub(crate) async fn eventually(condition: impl AsyncFn() -> bool) {
    let look = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, look).await.expect("the condition comes true in time");
}

/// A change of a record that is not refused.
pub(crate) fn goes<T>(
    change: impl FnOnce(&mut T) + Send,
) -> impl FnOnce(&mut T) -> Result<(), CatalogError> + Send {
    |record| {
        change(record);
        Ok(())
    }
}

/// An engine with one endpoint.
pub(crate) async fn one_endpoint(disks: &Disks) -> (Engine, EndpointHandle) {
    let engine = disks.start().await;
    let template = engine.create_template(template("t")).await.unwrap();
    let record = engine.create_endpoint(endpoint(template.id, "demo")).await.unwrap();
    let handle = engine.endpoint(record.id.as_str()).unwrap();
    (engine, handle)
}

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

pub(crate) fn endpoint(template_id: TemplateId, slug: &str) -> Endpoint {
    let entropy = slug.bytes().fold(7_u128, |sum, byte| sum * 31 + u128::from(byte));
    Endpoint {
        id: EndpointId::mint(entropy),
        no: EndpointNo(0),
        name: slug.to_owned(),
        slug: Some(slug.to_owned()),
        template_id,
        workers_min: 0,
        workers_max: 3,
        idle_timeout_s: 5,
        scaler_type: ScalerType::QueueDelay,
        scaler_value: 4,
        execution_timeout_ms: 600_000,
        max_retries: 2,
        retry_on: vec![RetryOn::WorkerLost],
        result_retention_ms: 60_000,
        sync_result_retention_ms: 60_000,
        max_queue_length: None,
        stop_grace_ms: None,
        stream_shape: None,
        paused_from: None,
        provider: Provider::External,
        max_concurrency: 1,
        durability: Durability::Synced,
        flashboot: true,
        compute_type: ComputeType::Cpu,
        gpu_count: 1,
        models: vec![],
        gpu_type_ids: vec![],
        allowed_cuda_versions: vec![],
        min_cuda_version: None,
        webhook: None,
        webhook_events: longshore_model::WebhookEvent::ENDS.to_vec(),
        cpu_flavor_ids: vec![],
        data_center_ids: vec![],
        network_volume_id: None,
        network_volume_ids: vec![],
        vcpu_count: 2,
        memory_bytes: None,
        vcpus: None,
        version: 1,
        created_at: Millis(0),
        user_id: String::new(),
        deleting: false,
    }
}

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
    }
}

pub(crate) fn worker(name: &str) -> WorkerId {
    name.parse().unwrap()
}

pub(crate) async fn take(handle: &EndpointHandle, name: &str, hold_ms: u64) -> Vec<TakenJob> {
    let ask = TakeRequest { slots: 1, says_busy: None, hold_ms };
    handle.take(worker(name), ask).await.unwrap()
}

pub(crate) async fn done(handle: &EndpointHandle, name: &str, job: JobId, output: &str) {
    let output = Some(Bytes::from(output.to_owned()));
    handle.report(worker(name), job, Outcome::Completed { output }).await.unwrap();
}

pub(crate) fn output(job: &JobSnapshot) -> &str {
    std::str::from_utf8(job.output.as_deref().unwrap_or_default()).unwrap()
}

/// A clock that can jump ahead, as it seems to when the machine wakes up.
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

/// A memory store whose disk can break, or take its time.
#[derive(Default)]
pub(crate) struct BreakableStore {
    inner: MemoryStore,
    broken: AtomicBool,
    chains: Mutex<CommitChains>,
    /// Commits get no further than to the disk.
    held: watch::Sender<bool>,
    /// How many commits were handed over.
    pub(crate) commits: AtomicU64,
    commit_ms: AtomicU64,
    read_ms: AtomicU64,
    /// Jobs whose rows cannot be read, and why.
    unreadable: Mutex<HashMap<JobKey, StoreError>>,
    /// Every row.
    unread: AtomicBool,
    /// How often an input was asked for.
    pub(crate) inputs: AtomicU64,
    /// How often somebody asked for an outcome, or for chunks.
    pub(crate) looks: AtomicU64,
    /// The writes in the largest batch so far.
    pub(crate) largest: AtomicU64,
}

impl BreakableStore {
    pub(crate) fn set_broken(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// Nothing of this job can be read, until it can.
    pub(crate) fn set_unreadable(&self, job: JobKey, why: Option<StoreError>) {
        let mut unreadable = self.unreadable.lock().unwrap();
        match why {
            Some(why) => _ = unreadable.insert(job, why),
            None => _ = unreadable.remove(&job),
        }
    }

    /// Whether nothing of any job can be read.
    pub(crate) fn set_unread(&self, unread: bool) {
        self.unread.store(unread, Ordering::SeqCst);
    }

    fn check_readable(&self, job: JobKey) -> Result<(), StoreError> {
        if self.unread.load(Ordering::SeqCst) {
            return Err(StoreError::Io("input/output error".to_owned()));
        }
        self.unreadable.lock().unwrap().get(&job).map_or(Ok(()), |why| Err(why.clone()))
    }

    /// Whether commits, those that fail too, wait where they are.
    pub(crate) fn set_held(&self, held: bool) {
        self.held.send_replace(held);
    }

    pub(crate) fn set_commit_ms(&self, ms: u64) {
        self.commit_ms.store(ms, Ordering::SeqCst);
    }

    /// How long it takes from the question for an outcome or for chunks until the rows are read.
    pub(crate) fn set_read_ms(&self, ms: u64) {
        self.read_ms.store(ms, Ordering::SeqCst);
    }

    /// Somebody asks for an outcome, or for chunks.
    async fn look(&self) {
        self.looks.fetch_add(1, Ordering::SeqCst);
        wait_for_the_disk(Duration::from_millis(self.read_ms.load(Ordering::SeqCst))).await;
    }
}

/// A slow disk: what is tested is what others see meanwhile.
async fn wait_for_the_disk(takes: Duration) {
    tokio::time::sleep(takes).await;
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
        let takes = Duration::from_millis(self.commit_ms.load(Ordering::SeqCst));
        Box::pin(async move {
            let _ = held.wait_for(|held| !held).await;
            wait_for_the_disk(takes).await;
            self.inner.commit(shard, epoch, batch).await
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
            Err(why) => Box::pin(std::future::ready(Err(why))),
        }
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        Box::pin(async move {
            self.look().await;
            self.check_readable(job)?;
            self.inner.outcome(job).await
        })
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        self.inner.stream(job)
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        Box::pin(async move {
            self.look().await;
            self.check_readable(job)?;
            self.inner.chunks(job, offset, bytes_max).await
        })
    }
}
