//! Bulk tasks (`/v2/{endpoint}/bulk`).

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// A bulk task as the server shows it.
#[derive(Clone, Debug, Deserialize)]
pub struct BulkTask {
    /// The id; `None` for a dry run.
    pub id: Option<String>,
    /// `running`, `completed`, `stopped` or `dryRun`.
    pub state: String,
    /// The number of jobs that matched when the task was created.
    pub matches: u64,
    /// Whether every job that matched was counted. Only known at the creation.
    #[serde(default)]
    pub counted: Option<bool>,
    /// The number of jobs that were changed.
    pub done: u64,
    /// The number of jobs that could not be changed.
    pub failed: u64,
}

impl Client {
    /// Creates a bulk task, and returns it as JSON text. `request` is the body.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn create_bulk(&self, endpoint: &str, request: &Value) -> Result<Box<RawValue>, ClientError> {
        let path = format!("/v2/{}/bulk", segment(endpoint));
        self.transport.json(RequestBuilder::post(&path, Bytes::from(request.to_string()))).await
    }

    /// Returns a bulk task as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn bulk(&self, endpoint: &str, id: &str) -> Result<Box<RawValue>, ClientError> {
        let path = format!("/v2/{}/bulk/{}", segment(endpoint), segment(id));
        self.transport.json(RequestBuilder::get(&path)).await
    }

    /// Stops a bulk task that runs, or forgets one that has ended. Returns the task as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn stop_bulk(&self, endpoint: &str, id: &str) -> Result<Box<RawValue>, ClientError> {
        let path = format!("/v2/{}/bulk/{}", segment(endpoint), segment(id));
        self.transport.json(RequestBuilder::new(Method::DELETE, &path)).await
    }
}
