//! The job interface (`/v2`).

use std::time::Duration;

use bytes::Bytes;
use longshore_model::{JobId, JobState};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError, wire};

/// A job as the server shows it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// The id, unique on the server.
    #[serde(deserialize_with = "wire::parsed")]
    pub id: JobId,
    /// The state when the server answered.
    #[serde(deserialize_with = "wire::state")]
    pub status: JobState,
    /// The output, or the latest progress value of a running job: JSON text. `None` without one.
    #[serde(default)]
    pub output: Option<Box<RawValue>>,
    /// The error of a job that failed; `None` otherwise.
    #[serde(default)]
    pub error: Option<String>,
    /// Time in the queue before the current attempt, in ms.
    #[serde(default)]
    pub delay_time: Option<u64>,
    /// Time of execution, in ms.
    #[serde(default)]
    pub execution_time: Option<u64>,
    /// The worker that runs the job, or ran it last.
    #[serde(default)]
    pub worker_id: Option<String>,
    /// The position of a queued job, 1 is next; `None` unless [`Client::status`] or [`Client::status_sync`] returned
    /// it.
    #[serde(default)]
    pub position: Option<u64>,
    /// Automatic retries so far.
    #[serde(default)]
    pub retries: u32,
    /// The whole job as JSON text, as the server wrote it.
    #[serde(skip)]
    pub text: Bytes,
}

/// What is known of a job beside its state, as far as commands show it.
#[derive(Debug, Deserialize)]
pub struct JobLife {
    /// The last attempts, oldest first, each as JSON text.
    pub attempts: Vec<Box<RawValue>>,
}

/// One chunk of a job's stream.
#[derive(Debug, Deserialize)]
pub struct Chunk {
    /// What the handler yielded: JSON text.
    pub output: Box<RawValue>,
    /// The metrics of the chunk: JSON text; `None` without them.
    pub metrics: Option<Box<RawValue>>,
}

/// Some chunks, and the job's state.
#[derive(Debug, Deserialize)]
pub struct StreamPage {
    /// The job's state. If it is terminal and the page is empty, the stream has ended.
    #[serde(deserialize_with = "wire::state")]
    pub status: JobState,
    /// The chunks in order.
    pub stream: Vec<Chunk>,
}

/// A page of an endpoint's jobs, newest first.
#[derive(Debug, Deserialize)]
pub struct JobPage {
    /// The jobs, each as JSON text.
    pub requests: Vec<Box<RawValue>>,
    /// The cursor of the next page; `None` on the last page.
    pub cursor: Option<String>,
}

/// The result of a purge.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Purged {
    /// How many jobs were cancelled.
    pub removed: u64,
}

/// Counts of an endpoint's jobs and workers.
#[derive(Clone, Debug, Deserialize)]
pub struct Health {
    /// The counts of jobs by state.
    pub jobs: HealthJobs,
    /// The counts of workers by state.
    pub workers: HealthWorkers,
    /// Why workers are held back.
    #[serde(default)]
    pub reasons: HealthReasons,
}

/// Why workers are held back. Each reason is `None` if no worker is held back by it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HealthReasons {
    /// What a worker asks for that no computer has.
    pub impossible: Option<String>,
    /// What the throttled workers wait for.
    pub throttled: Option<String>,
    /// How the last worker that crashed exited, with its last log lines.
    pub unhealthy: Option<String>,
}

/// Counts of jobs by state.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthJobs {
    /// Jobs that completed since the endpoint was made.
    pub completed: u64,
    /// Jobs that failed or timed out since the endpoint was made.
    pub failed: u64,
    /// Jobs that are running.
    pub in_progress: u64,
    /// Jobs that are queued.
    pub in_queue: u64,
    /// Retries since the endpoint was made, automatic and by clients.
    pub retried: u64,
}

/// Counts of workers by state.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HealthWorkers {
    /// Workers that hold no job.
    pub idle: u32,
    /// Workers that have started and not taken a job yet.
    pub initializing: u32,
    /// Workers that could take a job immediately.
    pub ready: u32,
    /// Workers that hold at least one job.
    pub running: u32,
    /// Workers that are wanted and cannot be placed.
    pub throttled: u32,
    /// Workers that crash repeatedly.
    pub unhealthy: u32,
}

impl Client {
    /// Submits a job. `request` is the whole request body, as JSON text. A second submit with the same body and the
    /// same `idempotency_key` returns the first job.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn run(
        &self,
        endpoint: &str,
        request: Bytes,
        idempotency_key: Option<&str>,
    ) -> Result<Job, ClientError> {
        let path = format!("/v2/{}/run", segment(endpoint));
        self.job(RequestBuilder { idempotency_key, ..RequestBuilder::post(&path, request) }).await
    }

    /// Submits a job and waits for its end; returns the job as it is when `wait` has passed.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
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

    /// Returns a job as it is.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn status(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.job(RequestBuilder::get(&format!("/v2/{}/status/{job}?position=true", segment(endpoint)))).await
    }

    /// Returns the life of a job.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn job_life(&self, endpoint: &str, job: JobId) -> Result<JobLife, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v2/{}/jobs/{job}", segment(endpoint)))).await
    }

    /// Returns a job when it has ended, or as it is when `wait` has passed.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn status_sync(&self, endpoint: &str, job: JobId, wait: Duration) -> Result<Job, ClientError> {
        let path =
            format!("/v2/{}/status-sync/{job}?position=true&wait={}", segment(endpoint), wait.as_millis());
        self.job(RequestBuilder::get(&path).held(wait)).await
    }

    /// Returns chunks of a job's stream from `offset` on, and consumes none. Waits up to `wait` if a job that has not
    /// ended has no chunk there.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn stream(
        &self,
        endpoint: &str,
        job: JobId,
        offset: u64,
        wait: Duration,
    ) -> Result<StreamPage, ClientError> {
        let wait_ms = wait.as_millis();
        // The mount of the client libraries returns the job's state with the chunks.
        let path = format!("/sdk/v2/{}/stream/{job}?offset={offset}&wait={wait_ms}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path).held(wait)).await
    }

    /// Cancels a job and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn cancel(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.job(RequestBuilder::post(&format!("/v2/{}/cancel/{job}", segment(endpoint)), Bytes::new())).await
    }

    /// Retries a job that failed or timed out, and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn retry(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.job(RequestBuilder::post(&format!("/v2/{}/retry/{job}", segment(endpoint)), Bytes::new())).await
    }

    /// Cancels all queued jobs of an endpoint.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn purge(&self, endpoint: &str) -> Result<Purged, ClientError> {
        self.transport
            .json(RequestBuilder::post(&format!("/v2/{}/purge-queue", segment(endpoint)), Bytes::new()))
            .await
    }

    /// Returns the counts of an endpoint's jobs and workers.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn health(&self, endpoint: &str) -> Result<Health, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v2/{}/health", segment(endpoint)))).await
    }

    /// Returns the counts of an endpoint's jobs and workers as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn health_text(&self, endpoint: &str) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v2/{}/health", segment(endpoint)))).await
    }

    /// Returns a page of an endpoint's jobs, newest first: `query` is `status=…&limit=…&cursor=…`, each part optional.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
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
