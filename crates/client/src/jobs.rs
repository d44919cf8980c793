//! The job interface (`/v2`).

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use longshore_model::{JobId, JobState};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::transport::Call;
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
    /// Automatic re-dispatches.
    #[serde(default)]
    pub retries: u32,
}

/// One piece of a job's stream.
#[derive(Debug, Deserialize)]
pub struct Chunk {
    /// What the handler yielded: JSON text.
    pub output: Box<RawValue>,
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
    /// Hands in a job. `request` is the whole request body, as JSON text.
    pub async fn run(&self, endpoint: &str, request: Bytes) -> Result<Job, ClientError> {
        let path = format!("/v2/{endpoint}/run");
        self.transport.json(post(&path, request, Duration::ZERO)).await
    }

    /// Hands in a job and waits for its end; answers the job as it is when `wait` has passed.
    pub async fn runsync(&self, endpoint: &str, request: Bytes, wait: Duration) -> Result<Job, ClientError> {
        let path = format!("/v2/{endpoint}/runsync?wait={}", wait.as_millis());
        self.transport.json(post(&path, request, wait)).await
    }

    /// A job as it is.
    pub async fn status(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        self.transport.json(get(&format!("/v2/{endpoint}/status/{job}"), Duration::ZERO)).await
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
        let path = format!("/sdk/v2/{endpoint}/stream/{job}?offset={offset}&wait={wait_ms}");
        self.transport.json(get(&path, wait)).await
    }

    /// Cancels a job; answers it as it is then.
    pub async fn cancel(&self, endpoint: &str, job: JobId) -> Result<Job, ClientError> {
        let path = format!("/v2/{endpoint}/cancel/{job}");
        self.transport.json(post(&path, Bytes::new(), Duration::ZERO)).await
    }

    /// An endpoint's numbers.
    pub async fn health(&self, endpoint: &str) -> Result<Health, ClientError> {
        self.transport.json(get(&format!("/v2/{endpoint}/health"), Duration::ZERO)).await
    }
}

fn get(path: &str, wait: Duration) -> Call<'_> {
    Call { method: Method::GET, path, body: None, wait }
}

fn post(path: &str, body: Bytes, wait: Duration) -> Call<'_> {
    Call { method: Method::POST, path, body: Some(body), wait }
}
