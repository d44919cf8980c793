//! Code that is deployed to a server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use longshore_model::EndpointId;
use serde::Deserialize;

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

/// What uploaded code belongs to.
#[derive(Clone, Copy, Debug)]
pub enum CodeOwner<'a> {
    /// A name that all versions share. Needs a key with `manage` for all endpoints.
    Name(&'a str),
    /// The endpoint with this id. Needs a key with `manage` for the endpoint.
    Endpoint(EndpointId),
}

impl Client {
    /// Uploads the archive of a folder, a gzipped tar, as a version; `sent` counts the archive's bytes as they are sent.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn keep_code(
        &self,
        owner: CodeOwner<'_>,
        archive: Bytes,
        sent: Arc<AtomicU64>,
    ) -> Result<CodeVersion, ClientError> {
        let path = match owner {
            CodeOwner::Name(name) => format!("/v1/code?name={name}"),
            CodeOwner::Endpoint(id) => format!("/v1/code?endpoint={id}"),
        };
        let call = RequestBuilder::new(Method::POST, &path).held(UPLOAD_TIME_MAX);
        let body = Some(archive);
        self.transport
            .json(RequestBuilder { body, sent: Some(sent), content_type: "application/gzip", ..call })
            .await
    }
}
