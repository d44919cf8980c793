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

/// A slow line takes this long for the largest archive.
const UPLOAD_TIME_MAX: Duration = Duration::from_hours(1);

/// One deployed state of a folder.
#[derive(Clone, Debug, Deserialize)]
pub struct CodeVersion {
    /// Lower-case hex of the SHA-256 of its archive.
    pub hash: String,
    /// The folder on the server that it is in.
    pub workdir: String,
    /// The command line that runs it there.
    pub command: Vec<String>,
}

impl Client {
    /// Sends the archive of a folder, a gzipped tar; `sent` counts its bytes on the way.
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
    pub async fn code_versions(&self, name: &str) -> Result<Vec<CodeVersion>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v1/code?name={name}"))).await
    }

    /// The same as JSON text.
    pub async fn code_versions_text(&self, name: &str) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v1/code?name={name}"))).await
    }
}
