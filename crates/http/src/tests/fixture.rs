//! A server with an engine, one endpoint, and a worker that does what a test tells it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use longshore_blobs::MemoryBlobs;
use longshore_engine::{
    EndpointHandle, Engine, EngineParts, EngineSettings, HttpTransport, MemoryWebhookLog, Outcome, Runtime,
    TakeRequest, TakenJob, TokioRuntime, WebhookSettings, WorkerSettings,
};
use longshore_model::{JobId, Millis, WorkerId};
use longshore_store::MemoryStore;
use tokio::time::timeout;

use super::wire::{Answer, DEADLINE, Served};
use crate::{HttpSettings, HttpState, admin_key, router};

const KEY: &str = "the operators key";

pub(super) struct Fixture {
    pub(super) engine: Engine,
    pub(super) server: Served,
    pub(super) blobs: Arc<MemoryBlobs>,
    /// The endpoint, with the slug `demo`.
    pub(super) endpoint: EndpointHandle,
}

/// The parts of an engine without launchers, with webhooks that may call private addresses.
pub(super) fn engine_parts(
    store: Arc<MemoryStore>,
    blobs: Arc<MemoryBlobs>,
    runtime: Arc<dyn Runtime>,
) -> EngineParts {
    EngineParts {
        store,
        blobs,
        launchers: BTreeMap::new(),
        runtime,
        webhook_transport: Arc::new(HttpTransport::new(&WebhookSettings::default())),
        vault: Arc::default(),
        webhook_log: Arc::new(MemoryWebhookLog::default()),
        settings: EngineSettings::default(),
        // The tests name receivers on this computer, so that no name is looked up.
        webhooks: WebhookSettings { allow_private: true, ..WebhookSettings::default() },
        workers: WorkerSettings::default(),
        traces: None,
    }
}

impl Fixture {
    pub(super) async fn start() -> Self {
        Self::with(&HttpSettings::default(), "").await
    }

    /// A server with these settings, and further members of the endpoint.
    pub(super) async fn with(settings: &HttpSettings, members: &str) -> Self {
        let blobs = Arc::new(MemoryBlobs::new());
        let store = Arc::new(MemoryStore::new());
        let parts = engine_parts(store, Arc::<MemoryBlobs>::clone(&blobs), Arc::new(TokioRuntime));
        let engine = Engine::start(parts).await.unwrap();
        engine.keys().put(admin_key(KEY, Millis(0))).await.unwrap();
        let server = Served::start(router(HttpState::new(engine.clone(), settings))).await;
        let template = ask(&server, "POST /v1/templates", r#"{"name":"t","imageName":"i"}"#).await.json();
        let template = &template["id"];
        let record =
            format!(r#"{{"name":"d","slug":"demo","templateId":{template},"provider":"external"{members}}}"#);
        let created = ask(&server, "POST /v1/endpoints", &record).await;
        assert_eq!(created.status, 200, "{created:?}");
        let endpoint = engine.endpoint("demo").unwrap();
        Self { engine, server, blobs, endpoint }
    }

    /// Sends a request with the operator's key.
    pub(super) async fn ask(&self, head: &str, body: &str) -> Answer {
        ask(&self.server, head, body).await
    }

    /// Sends an invalid request; returns its status and code.
    pub(super) async fn refusal(&self, head: &str, body: &str) -> (u16, String) {
        let answer = self.ask(head, body).await;
        (answer.status, answer.code())
    }

    /// Submits a job with `/run`.
    pub(super) async fn submit(&self) -> JobId {
        let answer = self.ask("POST /v2/demo/run", r#"{"input":{}}"#).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["id"].as_str().unwrap().parse().unwrap()
    }

    /// Submits a job and takes it.
    pub(super) async fn running(&self) -> JobId {
        let id = self.submit().await;
        assert_eq!(self.take().await.row.id, id);
        id
    }

    /// The next job, when there is one.
    pub(super) async fn take(&self) -> TakenJob {
        let ask = TakeRequest { slots: 1, says_busy: None, hold_ms: 20_000, address: None };
        let mut jobs = timeout(DEADLINE, self.endpoint.workers().take(worker(), ask)).await.unwrap().unwrap();
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    }

    pub(super) async fn complete(&self, job: JobId, output: &'static str) {
        let output = Some(Bytes::from_static(output.as_bytes()));
        self.endpoint.workers().report(worker(), job, Outcome::Completed { output }).await.unwrap();
    }

    pub(super) async fn fail(&self, job: JobId, error: &str) {
        let outcome = Outcome::Failed { error: error.to_owned(), output: None };
        self.endpoint.workers().report(worker(), job, outcome).await.unwrap();
    }

    pub(super) async fn yield_chunks(&self, job: JobId, chunks: &[&'static str]) {
        let chunks = chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes()).into()).collect();
        self.endpoint.workers().append(worker(), job, chunks).await.unwrap();
    }

    /// Waits until a poll finds what a job yielded: other waiters have been woken by then.
    pub(super) async fn until_read(&self, job: JobId) {
        let path = format!("GET /v2/demo/stream/{job}?offset=0&wait=20000");
        assert_ne!(self.ask(&path, "").await.text(), "[]");
        // Tasks that were woken have run after this.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// The state of the job in the response of `/status`.
    pub(super) async fn state(&self, job: JobId) -> String {
        let answer = self.ask(&format!("GET /v2/demo/status/{job}"), "").await;
        answer.json()["status"].as_str().unwrap().to_owned()
    }

    /// Waits for the next millisecond: ids are ordered by creation to the millisecond.
    pub(super) async fn next_millisecond(&self) {
        let now = self.engine.now();
        while self.engine.now() == now {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until `/status` returns this HTTP status.
    pub(super) async fn until_status_is(&self, job: JobId, status: u16) {
        let reached = async {
            while self.ask(&format!("GET /v2/demo/status/{job}"), "").await.status != status {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(DEADLINE, reached).await.unwrap();
    }
}

/// The head of a request with the operator's key.
pub(super) fn with_key(head: &str) -> String {
    format!("{head}\nauthorization: Bearer {KEY}")
}

pub(super) fn worker() -> WorkerId {
    "w-1".parse().unwrap()
}

async fn ask(server: &Served, head: &str, body: &str) -> Answer {
    timeout(DEADLINE, server.ask(&with_key(head), body.as_bytes())).await.unwrap()
}
