//! The job interface (`/v2`).

use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobState};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError, wire};

/// A job's record.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Its id.
    #[serde(deserialize_with = "wire::parsed")]
    pub id: JobId,
    /// Its state.
    #[serde(deserialize_with = "wire::state")]
    pub status: JobState,
    /// The result, or the latest progress value while it runs: JSON text.
    #[serde(default)]
    pub output: Option<Box<RawValue>>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Milliseconds in the queue before the current attempt.
    #[serde(default)]
    pub delay_time: Option<u64>,
    /// Milliseconds of execution.
    #[serde(default)]
    pub execution_time: Option<u64>,
    /// The worker that holds it, or held it last.
    #[serde(default)]
    pub worker_id: Option<String>,
    /// Its place in the line while it waits, 1 for the next; [`Client::status`] and [`Client::status_sync`] tell it.
    #[serde(default)]
    pub position: Option<u64>,
    /// Automatic re-dispatches.
    #[serde(default)]
    pub retries: u32,
    /// The record as the server wrote it: JSON text.
    #[serde(skip)]
    pub text: Bytes,
}

/// One piece of a job's stream.
#[derive(Debug, Deserialize)]
pub struct Chunk {
    /// What the handler yielded: JSON text.
    pub output: Box<RawValue>,
    /// What it says beside that: JSON text.
    pub metrics: Option<Box<RawValue>>,
}

/// Some chunks, and where the job stands.
#[derive(Debug, Deserialize)]
pub struct StreamPage {
    /// The job's state. Once it is terminal and the page is empty, nothing more comes.
    #[serde(deserialize_with = "wire::state")]
    pub status: JobState,
    /// The chunks, in order.
    pub stream: Vec<Chunk>,
}

/// Some of an endpoint's jobs, newest first.
#[derive(Debug, Deserialize)]
pub struct JobPage {
    /// Their records: JSON text.
    pub requests: Vec<Box<RawValue>>,
    /// Asks for those after them; none where these are the last.
    pub cursor: Option<String>,
}

/// What became of a queue.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Purged {
    /// How many jobs were removed.
    pub removed: u64,
}

/// An endpoint's numbers.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Health {
    /// Its jobs.
    pub jobs: HealthJobs,
    /// Its workers.
    pub workers: HealthWorkers,
}

/// How many jobs there are, or were.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthJobs {
    /// Completed, ever.
    pub completed: u64,
    /// Failed or timed out, ever.
    pub failed: u64,
    /// Held by a worker now.
    pub in_progress: u64,
    /// Waiting now.
    pub in_queue: u64,
    /// Re-dispatched or retried, ever.
    pub retried: u64,
}

/// Workers by condition.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HealthWorkers {
    /// Hold no job.
    pub idle: u32,
    /// Started, have not asked for a job yet.
    pub initializing: u32,
    /// Could take a job at once.
    pub ready: u32,
    /// Hold at least one job.
    pub running: u32,
    /// Wanted, but without a place.
    pub throttled: u32,
    /// Keep crashing.
    pub unhealthy: u32,
}

impl Client {
    /// Hands in a job. `request` is the whole request body, as JSON text; the same one with the same
    /// `idempotency_key` makes no second job.
    pub async fn run(
        &self,
        endpoint: &str,
        request: Bytes,
        idempotency_key: Option<&str>,
    ) -> Result<Job, ClientError> {
        let path = format!("/v2/{}/run", segment(endpoint));
        self.job(RequestBuilder { idempotency_key, ..RequestBuilder::post(&path, request) }).await
    }

    /// Hands in a job and waits for its end; answers the job as it is when `wait` has passed.
    pub async fn runsync(
        &self,
        endpoint: &str,
        request: Bytes,
        wait: Duration,
        idempotency_key: Option<&str>,
    ) -> Result<Job, ClientError> {
        let path = format!("/v2/{}/runsync?wait={}", segment(endpoint), wait.as_millis());
        self.job(RequestBuilder { idempotency_key, ..RequestBuilder::post(&path, request).held(wait) }).await
    }

    /// A job as it is.
    pub async fn status(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.job(RequestBuilder::get(&format!("/v2/{}/status/{job}?position=true", segment(endpoint)))).await
    }

    /// A job once it has ended, or as it is when `wait` has passed.
    pub async fn status_sync(&self, endpoint: &str, job: JobId, wait: Duration) -> Result<Job, ClientError> {
        let path =
            format!("/v2/{}/status-sync/{job}?position=true&wait={}", segment(endpoint), wait.as_millis());
        self.job(RequestBuilder::get(&path).held(wait)).await
    }

    /// Chunks of a job's stream from `offset` on, without draining it. Held for up to `wait` while the job is
    /// live and there is none.
    pub async fn stream(
        &self,
        endpoint: &str,
        job: JobId,
        offset: u64,
        wait: Duration,
    ) -> Result<StreamPage, ClientError> {
        let wait_ms = wait.as_millis();
        // The mount for client SDKs says the job's state along with the chunks.
        let path = format!("/sdk/v2/{}/stream/{job}?offset={offset}&wait={wait_ms}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path).held(wait)).await
    }

    /// Cancels a job; answers it as it is then.
    pub async fn cancel(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.job(RequestBuilder::post(&format!("/v2/{}/cancel/{job}", segment(endpoint)), Bytes::new())).await
    }

    /// Runs a job that failed or timed out once more.
    pub async fn retry(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.job(RequestBuilder::post(&format!("/v2/{}/retry/{job}", segment(endpoint)), Bytes::new())).await
    }

    /// Removes what waits in an endpoint's queue.
    pub async fn purge(&self, endpoint: &str) -> Result<Purged, ClientError> {
        self.transport
            .json(RequestBuilder::post(&format!("/v2/{}/purge-queue", segment(endpoint)), Bytes::new()))
            .await
    }

    /// An endpoint's numbers.
    pub async fn health(&self, endpoint: &str) -> Result<Health, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v2/{}/health", segment(endpoint)))).await
    }

    /// An endpoint's numbers as the server wrote them: JSON text.
    pub async fn health_text(&self, endpoint: &str) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v2/{}/health", segment(endpoint)))).await
    }

    /// An endpoint's jobs, newest first: `query` is `status=…&limit=…&cursor=…`, any of them.
    pub async fn requests(&self, endpoint: &str, query: &str) -> Result<JobPage, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v2/{}/requests?{query}", segment(endpoint)))).await
    }

    async fn job(&self, call: RequestBuilder<'_>) -> Result<Job, ClientError> {
        let path = call.path.to_owned();
        let text = self.transport.bytes(call).await?;
        let unexpected =
            |error: serde_json::Error| ClientError::Unexpected { url: path, cause: error.to_string() };
        let job = serde_json::from_slice::<Job>(&text).map_err(unexpected)?;
        Ok(Job { text, ..job })
    }
}
