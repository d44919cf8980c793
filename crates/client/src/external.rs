//! An external worker: takes jobs and reports their results.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::{RequestBuilder, Transport};
use crate::{Client, ClientError};

/// Longest time that the server holds a take.
const HOLD_MAX: Duration = Duration::from_secs(25);

/// The server's settings for an external worker.
#[derive(Deserialize)]
struct WorkerToken {
    token: String,
    env: BTreeMap<String, String>,
}

/// A job that was delivered to the worker.
#[derive(Debug, Deserialize)]
pub struct TakenJob {
    /// The job's id, to report its result with.
    pub id: String,
    /// The input: JSON text.
    pub input: Box<RawValue>,
}

/// A worker of one endpoint.
#[derive(Clone)]
pub struct ExternalWorker {
    transport: Transport,
    take_url: String,
    done_url: String,
}

impl Client {
    /// Returns a new worker of an endpoint with external workers.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn external_worker(&self, endpoint: &str) -> Result<ExternalWorker, ClientError> {
        let path = format!("/v1/endpoints/{}/worker-token", segment(endpoint));
        let given: WorkerToken = self.transport.json(RequestBuilder::post(&path, Bytes::new())).await?;
        let variable = |name: &str| {
            given.env.get(name).cloned().ok_or_else(|| {
                let cause = format!("there is no `{name}` in the worker's environment");
                ClientError::Unexpected { url: path.clone(), cause }
            })
        };
        let worker = variable("RUNPOD_POD_ID")?;
        let with_worker = |url: String| url.replace("$RUNPOD_POD_ID", &worker);
        let take_url = with_worker(variable("RUNPOD_WEBHOOK_GET_JOB")?).replace("$ID", &worker);
        Ok(ExternalWorker {
            transport: self.transport.with_key(&given.token, &take_url)?,
            take_url,
            done_url: with_worker(variable("RUNPOD_WEBHOOK_POST_OUTPUT")?),
        })
    }
}

impl ExternalWorker {
    /// Takes the next job. `None` if there was none until the server ended the take, after at most 25 s.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn take(&self) -> Result<Option<TakenJob>, ClientError> {
        let url = format!("{}&job_in_progress=0", self.take_url);
        let text = self.transport.bytes(RequestBuilder::new(Method::GET, &url).held(HOLD_MAX)).await?;
        if text.is_empty() {
            return Ok(None);
        }
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| ClientError::Unexpected { url, cause: error.to_string() })
    }

    /// Reports a job's output, which is JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn done(&self, job: &str, output: &str) -> Result<(), ClientError> {
        let url = format!("{}&isStream=false", self.done_url.replace("$ID", job));
        let body = Bytes::from(format!("{{\"output\":{output}}}"));
        self.transport.bytes(RequestBuilder::post(&url, body)).await.map(|_| ())
    }
}
