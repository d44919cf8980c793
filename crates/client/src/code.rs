//! Code that is deployed to a server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// Time to upload the largest archive over a slow line.
const UPLOAD_TIME_MAX: Duration = Duration::from_hours(1);

/// One deployed version of a folder.
#[derive(Clone, Debug, Deserialize)]
pub struct CodeVersion {
    /// Lower-case hex of the SHA-256 of the version's archive.
    pub hash: String,
    /// The folder on the server that has the version.
    pub workdir: String,
    /// The command line that runs the version there.
    pub command: Vec<String>,
}

impl Client {
    /// Uploads the archive of a folder, a gzipped tar, as a version under `name`; `sent` counts the archive's bytes as
    /// they are sent.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn keep_code(
        &self,
        name: &str,
        archive: Bytes,
        sent: Arc<AtomicU64>,
    ) -> Result<CodeVersion, ClientError> {
        let path = format!("/v1/code?name={name}");
        let call = RequestBuilder::new(Method::POST, &path).held(UPLOAD_TIME_MAX);
        let body = Some(archive);
        self.transport
            .json(RequestBuilder { body, sent: Some(sent), content_type: "application/gzip", ..call })
            .await
    }

    /// The versions under a name, newest first.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn code_versions(&self, name: &str) -> Result<Vec<CodeVersion>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v1/code?name={name}"))).await
    }

    /// The versions under a name, newest first, each as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn code_versions_text(&self, name: &str) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v1/code?name={name}"))).await
    }
}
