//! An engine with one endpoint, for tests of its actor: commits can be paused, and the queue and its rows can be corrupted.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::MemoryBlobs;
use longshore_model::{
    Counters, EndedAttempt, Endpoint, EndpointNo, Epoch, JobId, JobKey, JobRow, JobState, Provider, ShardId,
    Submitter,
};
use longshore_queue::Queue;
use longshore_store::{
    Batch, Catalog, ChunkRow, MemoryStore, OutcomeRow, Payload, Store, StoreFuture, StreamRow, WebhookRow,
};
use tokio::sync::watch;

use crate::actor::request::Request;
use crate::runtime::TokioRuntime;
use crate::supervisor::tests::{a_template, an_endpoint};
use crate::{
    EndpointHandle, Engine, EngineParts, EngineSettings, HttpTransport, MemoryWebhookLog, Outcome,
    Submission, TakeRequest, TakenJob, WebhookSettings, WorkerSettings,
};

/// A wait in a test that takes longer than this fails.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

/// A store in memory whose commits can be paused.
#[derive(Default)]
pub(super) struct SlowStore {
    inner: MemoryStore,
    /// Commits wait while this is true.
    pub(super) is_paused: watch::Sender<bool>,
    /// The number of commits that were sent.
    pub(super) begun: watch::Sender<u64>,
    /// Jobs are read as those of another endpoint, which breaks an invariant of the queue.
    pub(super) has_corrupt_rows: AtomicBool,
}

impl Store for SlowStore {
    fn claim_shards(&self, shards: Vec<ShardId>) -> StoreFuture<'_, Vec<Epoch>> {
        self.inner.claim_shards(shards)
    }

    fn release_shards(&self, shards: Vec<(ShardId, Epoch)>) -> StoreFuture<'_, ()> {
        self.inner.release_shards(shards)
    }

    fn commit(&self, shard: ShardId, epoch: Epoch, batch: Batch) -> StoreFuture<'_, ()> {
        self.begun.send_modify(|begun| *begun += 1);
        let mut is_paused = self.is_paused.subscribe();
        Box::pin(async move {
            let _ = is_paused.wait_for(|is_paused| !is_paused).await;
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
        Box::pin(async move {
            let mut rows = self.inner.jobs(endpoint, after_seq, limit).await?;
            if self.has_corrupt_rows.load(Ordering::Relaxed) {
                rows = rows.into_iter().map(of_another_endpoint).collect();
            }
            Ok(rows)
        })
    }

    fn webhooks(&self, endpoint: EndpointNo) -> StoreFuture<'_, Vec<WebhookRow>> {
        self.inner.webhooks(endpoint)
    }

    fn input(&self, job: JobKey) -> StoreFuture<'_, Option<Payload>> {
        self.inner.input(job)
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        self.inner.outcome(job)
    }

    fn attempts(&self, job: JobKey) -> StoreFuture<'_, Vec<EndedAttempt>> {
        self.inner.attempts(job)
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        self.inner.stream(job)
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        self.inner.chunks(job, offset, bytes_max)
    }
}

/// The row as one of another endpoint.
fn of_another_endpoint(row: JobRow) -> JobRow {
    let key = JobKey { endpoint: EndpointNo(row.key.endpoint.0 + 1), ..row.key };
    JobRow { key, ..row }
}

/// An engine with one endpoint, its store and its log.
pub(super) struct Scene {
    pub(super) engine: Engine,
    pub(super) store: Arc<SlowStore>,
    pub(super) demo: EndpointHandle,
    pub(super) log: Log,
    // Every test subscribes: a log line that is reached without a subscriber first is disabled for all tests.
    _subscribed: tracing::subscriber::DefaultGuard,
}

impl Scene {
    pub(super) async fn start() -> Self {
        Self::start_with(EngineSettings::default()).await
    }

    pub(super) async fn start_with(settings: EngineSettings) -> Self {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let guard = tracing::subscriber::set_default(subscriber);
        let store = Arc::new(SlowStore::default());
        let parts = EngineParts {
            store: store.clone(),
            blobs: Arc::new(MemoryBlobs::default()),
            launchers: BTreeMap::new(),
            runtime: Arc::new(TokioRuntime),
            webhook_transport: Arc::new(HttpTransport::new(&WebhookSettings::default())),
            vault: Arc::default(),
            webhook_log: Arc::new(MemoryWebhookLog::default()),
            settings,
            webhooks: WebhookSettings::default(),
            workers: WorkerSettings::default(),
            traces: None,
        };
        let engine = Engine::start(parts).await.unwrap();
        engine.catalog().create_template(a_template()).await.unwrap();
        let record = Endpoint { provider: Provider::External, result_retention_ms: 600_000, ..an_endpoint() };
        let record = engine.create_endpoint(record).await.unwrap();
        let demo = engine.endpoint(record.id.as_str()).unwrap();
        Self { engine, store, demo, log, _subscribed: guard }
    }

    pub(super) fn job(&self) -> Submission {
        self.job_of(Bytes::from_static(br#""input":1"#))
    }

    pub(super) fn job_of(&self, members: Bytes) -> Submission {
        Submission {
            id: self.engine.mint_job(false),
            members,
            webhook: false,
            low_priority: false,
            execution_timeout_ms: None,
            ttl_ms: None,
            idempotency: None,
            submitter: Submitter::default(),
            trace: None,
        }
    }

    pub(super) async fn submit(&self) -> JobId {
        self.demo.jobs().submit(self.job()).await.unwrap().id
    }

    pub(super) async fn take(&self) -> TakenJob {
        let request = TakeRequest { slots: 1, says_busy: None, hold_ms: 60_000, address: None };
        self.demo.workers().take("w1".parse().unwrap(), request).await.unwrap().remove(0)
    }

    pub(super) async fn finish(&self, job: JobId) {
        let output = Some(Bytes::from_static(b"7"));
        self.demo.workers().report("w1".parse().unwrap(), job, Outcome::Completed { output }).await.unwrap();
    }

    pub(super) async fn state(&self, job: JobId) -> JobState {
        self.demo.jobs().status(job).await.unwrap().row.state
    }

    /// Changes the queue without its verbs.
    pub(super) fn corrupt(&self, corrupt: impl FnOnce(&mut Queue) + Send + 'static) {
        let sent = self.demo.shared().requests.send(Request::Corrupt(Box::new(corrupt)));
        assert!(sent.is_ok(), "the actor runs");
    }

    /// Puts a job of another endpoint into the queue. It is in no row.
    pub(super) fn corrupt_with_a_stray(&self, row: JobRow) -> JobId {
        let id = self.engine.mint_job(false);
        let now = self.engine.now();
        let stray = of_another_endpoint(JobRow { id, ..row });
        self.corrupt(move |queue| queue.restore(stray, now));
        id
    }

    /// Waits until the queue is reloaded and accepts mutations.
    pub(super) async fn until_mutable(&self, job: JobId) {
        eventually(async || self.demo.jobs().set_ttl(job, 600_000).await.is_ok()).await;
    }
}

/// Waits until the condition is true.
pub(super) async fn eventually(condition: impl AsyncFn() -> bool) {
    let check = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, check).await.expect("the condition comes true in time");
}

/// The text of the log.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(super) fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
