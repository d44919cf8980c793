//! The fixture with the requests of its workers and its operator.

use serde_json::Value;

use super::fixture::{Fixture, with_key};
use super::wire::{Answer, Served};
use crate::HttpSettings;

/// How long an empty take is held.
pub(super) const HOLD_MS: u64 = 300;

pub(super) struct Server {
    pub(super) fixture: Fixture,
    pub(super) endpoint: String,
    pub(super) token: String,
}

impl Server {
    pub(super) async fn start() -> Self {
        Self::holding(HOLD_MS).await
    }

    /// With another hold of polls.
    pub(super) async fn holding(worker_hold_ms: u64) -> Self {
        let settings = HttpSettings { worker_hold_ms, ..HttpSettings::default() };
        let fixture = Fixture::with(&settings, "").await;
        let endpoint = fixture.endpoint.record().id;
        let token = fixture.engine.worker_token(&endpoint);
        Self { fixture, endpoint: endpoint.to_string(), token }
    }

    pub(super) fn served(&self) -> &Served {
        &self.fixture.server
    }

    /// A request with the operator's key: `POST /v1/endpoints`.
    pub(super) async fn manage(&self, line: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.served().ask(&with_key(line), body.as_bytes()).await
    }

    /// A request to the endpoint's job interface: `POST run`.
    pub(super) async fn client(&self, line: &str, body: &str) -> Answer {
        self.served().ask(&with_key(&self.at_endpoint(line)), body.as_bytes()).await
    }

    /// A request of one of the endpoint's workers, headers and all: `GET job-take/w1`.
    pub(super) async fn worker(&self, line: &str, body: &[u8]) -> Answer {
        self.served().ask(&self.worker_head(line), body).await
    }

    /// The content type that a worker's client library sends with every body.
    pub(super) fn worker_head(&self, line: &str) -> String {
        let kind = if line.starts_with("POST") { "x-www-form-urlencoded" } else { "json" };
        format!("{}\ncontent-type: application/{kind}\ncharset: utf-8", self.head(line, &self.token))
    }

    /// A request to the endpoint with some credential.
    pub(super) fn head(&self, line: &str, authorization: &str) -> String {
        format!("{}\nauthorization: {authorization}", self.at_endpoint(line))
    }

    fn at_endpoint(&self, line: &str) -> String {
        let (method, path) = line.split_once(' ').unwrap();
        format!("{method} /v2/{}/{path}", self.endpoint)
    }

    /// Submits a job, and returns its id.
    pub(super) async fn run(&self, body: &str) -> String {
        let answer = self.client("POST run", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    /// Submits a job and delivers it to a worker; returns its id.
    pub(super) async fn running(&self, worker: &str) -> String {
        let job = self.run(r#"{"input": {}}"#).await;
        let taken = self.worker(&format!("GET job-take/{worker}?"), b"").await;
        assert_eq!(taken.json()["id"], job.as_str());
        job
    }

    /// A worker's report; the response is always 200.
    pub(super) async fn report(&self, path: &str, body: impl AsRef<[u8]>) {
        let answer = self.worker(&format!("POST {path}?&isStream=false"), body.as_ref()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// A job's record.
    pub(super) async fn record(&self, job: &str) -> Value {
        self.client(&format!("GET status/{job}"), "").await.json()
    }

    /// The counts of `/health`.
    pub(super) async fn health(&self) -> Value {
        self.client("GET health", "").await.json()
    }
}
