//! A queue that is spoiled on purpose: it is dropped and loaded from rows, and nothing acknowledged is lost.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::MemoryBlobs;
use longshore_model::{
    Counters, Endpoint, EndpointNo, Epoch, JobId, JobKey, JobRow, JobState, Provider, ShardId, Submitter,
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
    EndpointError, EndpointHandle, Engine, EngineParts, EngineSettings, HttpTransport, MemoryWebhookLog,
    Outcome, Submission, TakeRequest, TakenJob, WebhookSettings, WorkerSettings,
};

/// A test that waits for longer than this waits for nothing.
const DEADLINE: Duration = Duration::from_mins(1);

/// A store in memory whose commits can be held up.
#[derive(Default)]
struct SlowStore {
    inner: MemoryStore,
    held: watch::Sender<bool>,
    begun: watch::Sender<u64>,
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
        let mut held = self.held.subscribe();
        Box::pin(async move {
            let _ = held.wait_for(|held| !held).await;
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
        self.inner.input(job)
    }

    fn outcome(&self, job: JobKey) -> StoreFuture<'_, Option<OutcomeRow>> {
        self.inner.outcome(job)
    }

    fn stream(&self, job: JobKey) -> StoreFuture<'_, Option<StreamRow>> {
        self.inner.stream(job)
    }

    fn chunks(&self, job: JobKey, offset: u64, bytes_max: usize) -> StoreFuture<'_, Vec<ChunkRow>> {
        self.inner.chunks(job, offset, bytes_max)
    }
}

/// An engine with one endpoint, whose store and log are at hand.
struct Scene {
    engine: Engine,
    store: Arc<SlowStore>,
    demo: EndpointHandle,
    log: Log,
    // Every test of this file subscribes: a log line that is first reached without a subscriber stays off for all of them.
    _listening: tracing::subscriber::DefaultGuard,
}

impl Scene {
    async fn start() -> Self {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let listening = tracing::subscriber::set_default(subscriber);
        let store = Arc::new(SlowStore::default());
        let parts = EngineParts {
            store: store.clone(),
            blobs: Arc::new(MemoryBlobs::default()),
            launchers: BTreeMap::new(),
            runtime: Arc::new(TokioRuntime),
            webhook_transport: Arc::new(HttpTransport::new(&WebhookSettings::default())),
            vault: Arc::default(),
            webhook_log: Arc::new(MemoryWebhookLog::default()),
            settings: EngineSettings::default(),
            webhooks: WebhookSettings::default(),
            workers: WorkerSettings::default(),
        };
        let engine = Engine::start(parts).await.unwrap();
        engine.create_template(a_template()).await.unwrap();
        let record = Endpoint { provider: Provider::External, ..an_endpoint() };
        let record = engine.create_endpoint(record).await.unwrap();
        let demo = engine.endpoint(record.id.as_str()).unwrap();
        Self { engine, store, demo, log, _listening: listening }
    }

    fn job(&self) -> Submission {
        Submission {
            id: self.engine.mint_job(false),
            members: Bytes::from_static(br#""input":1"#),
            webhook: false,
            low_priority: false,
            execution_timeout_ms: None,
            ttl_ms: None,
            idempotency: None,
            submitter: Submitter::default(),
        }
    }

    async fn submit(&self) -> JobId {
        self.demo.submit(self.job()).await.unwrap().id
    }

    async fn take(&self) -> TakenJob {
        let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 60_000 };
        self.demo.take("w1".parse().unwrap(), ask).await.unwrap().remove(0)
    }

    async fn finish(&self, job: JobId) {
        let output = Some(Bytes::from_static(b"7"));
        self.demo.report("w1".parse().unwrap(), job, Outcome::Completed { output }).await.unwrap();
    }

    async fn state(&self, job: JobId) -> JobState {
        self.demo.status(job).await.unwrap().row.state
    }

    fn spoil(&self, spoil: impl FnOnce(&mut Queue) + Send + 'static) {
        let asks = &self.demo.shared.requests;
        assert!(asks.send(Request::Spoil(Box::new(spoil))).is_ok(), "the actor runs");
    }

    /// Puts a job of another endpoint into the queue. It is in no row.
    fn spoil_with_a_stray(&self, row: JobRow) -> JobId {
        let id = self.engine.mint_job(false);
        let now = self.engine.now();
        let key = JobKey { endpoint: EndpointNo(row.key.endpoint.0 + 1), ..row.key };
        let stray = JobRow { id, key, ..row };
        self.spoil(move |queue| queue.restore(stray, now));
        id
    }

    /// The disk's pause after a reload is over.
    async fn until_changes_are_kept(&self, job: JobId) {
        eventually(async || self.demo.set_ttl(job, 600_000).await.is_ok()).await;
    }
}

async fn eventually(condition: impl AsyncFn() -> bool) {
    let look = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, look).await.expect("the condition comes true in time");
}

/// The log, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lines(&self) -> Vec<String> {
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

#[tokio::test]
async fn a_broken_invariant_is_found_by_sampling_and_the_queue_loaded_from_rows() {
    let scene = Scene::start().await;
    let running = scene.submit().await;
    assert_eq!(scene.take().await.row.id, running);
    let queued = scene.submit().await;
    let waiting = tokio::spawn({
        let (demo, submission) = (scene.demo.clone(), scene.job());
        async move { demo.submit_and_wait(submission, DEADLINE).await.unwrap() }
    });
    eventually(async || scene.demo.health().await.unwrap().in_queue == 2).await;

    let stray = scene.spoil_with_a_stray(scene.demo.status(queued).await.unwrap().row);
    // Any request is followed by a look at another job.
    eventually(async || {
        let _ = scene.demo.status(running).await;
        scene.engine.metrics().invariants_broken() == 1
    })
    .await;
    let lines = scene.log.lines();
    let loud = lines.iter().find(|line| line.contains("invariant broken, reloading queue")).unwrap();
    assert!(loud.contains("ERROR") && loud.contains(scene.demo.id().as_str()), "{loud}");
    assert!(loud.contains(&format!("job {stray} belongs to this endpoint")), "{loud}");

    scene.until_changes_are_kept(queued).await;
    assert_eq!(scene.state(running).await, JobState::InProgress);
    assert_eq!(scene.state(queued).await, JobState::InQueue);
    assert!(
        matches!(scene.demo.status(stray).await, Err(EndpointError::Refused(_))),
        "what is in no row is gone"
    );
    scene.finish(running).await;
    for _ in 0..2 {
        let job = scene.take().await.row.id;
        scene.finish(job).await;
    }
    assert_eq!(waiting.await.unwrap().row.state, JobState::Completed, "a wait survives the reload");
    let health = scene.demo.health().await.unwrap();
    assert_eq!((health.counters.completed, health.in_queue, health.in_progress), (3, 0, 0));
    assert_eq!(scene.engine.metrics().invariants_broken(), 1, "the loaded queue is whole");
}

#[tokio::test]
async fn what_was_decided_with_the_broken_queue_is_void() {
    let scene = Scene::start().await;
    let kept = scene.submit().await;
    let lost = scene.job();
    let id = lost.id;
    // Both are in the mailbox before the actor looks: they are one round.
    let (refused, ()) = tokio::join!(scene.demo.submit(lost), async {
        scene.spoil(|_| panic!("an invariant that a verb found broken"));
    });
    assert!(matches!(refused, Err(EndpointError::Unavailable(_))), "{refused:?}");
    assert_eq!(scene.engine.metrics().invariants_broken(), 1);
    scene.until_changes_are_kept(kept).await;
    assert!(matches!(scene.demo.status(id).await, Err(EndpointError::Refused(_))));
    let stored = scene.store.jobs(scene.demo.no(), 0, 9).await.unwrap();
    assert_eq!(stored.iter().map(|row| row.id).collect::<Vec<_>>(), [kept]);
}

#[tokio::test]
async fn rounds_in_flight_are_in_the_queue_that_follows() {
    let scene = Scene::start().await;
    let first = scene.submit().await;
    let mut begun = scene.store.begun.subscribe();
    begun.borrow_and_update();
    scene.store.held.send_replace(true);
    let in_flight = tokio::spawn({
        let (demo, submission) = (scene.demo.clone(), scene.job());
        async move { demo.submit(submission).await.unwrap().id }
    });
    begun.changed().await.unwrap();
    scene.spoil(|_| panic!("an invariant that a verb found broken"));
    eventually(async || scene.engine.metrics().invariants_broken() == 1).await;
    scene.store.held.send_replace(false);
    let second = in_flight.await.unwrap();
    scene.until_changes_are_kept(first).await;
    for job in [first, second] {
        assert_eq!(scene.take().await.row.id, job);
        scene.finish(job).await;
    }
}
