//! Code that is deployed to a server.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Method;
use longshore_model::EndpointId;
use longshore_model::limits::CODE_BODY_BYTES_MAX;
use serde::Deserialize;

use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// Time to upload the largest archive over a slow line.
const UPLOAD_TIME_MAX: Duration = Duration::from_hours(1);

/// Longest time between two pieces of an archive.
const PIECE_TIME_MAX: Duration = Duration::from_mins(1);

/// One deployed version of a folder.
#[derive(Clone, Debug, Deserialize)]
pub struct CodeVersion {
    /// Lower-case hex of the SHA-256 of the version's archive.
    pub hash: String,
    /// The folder on the server that has the version.
    pub workdir: String,
    /// The command line that runs the version there.
    pub command: Vec<String>,
    /// Whether the server wrote files: the version was new, or files of it were missing or differed. False if
    /// the server does not say it.
    #[serde(default)]
    pub changed: bool,
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

    /// Returns the archive of deployed code at the whole address `url`. The key is a worker token.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached, sends nothing for 60 s, or sends more bytes than
    /// code may have.
    pub async fn code_archive(&self, url: &str) -> Result<Bytes, ClientError> {
        let mut pieces = self.transport.pieces(RequestBuilder::get(url)).await?;
        let mut archive = BytesMut::new();
        loop {
            let next = tokio::time::timeout(PIECE_TIME_MAX, pieces.next()).await;
            let seconds = PIECE_TIME_MAX.as_secs();
            let next = next.map_err(|_| ClientError::TimedOut { url: url.to_owned(), seconds })??;
            let Some(piece) = next else { return Ok(archive.freeze()) };
            archive.extend_from_slice(&piece);
            if archive.len() > CODE_BODY_BYTES_MAX {
                let cause = format!("the archive has more than {CODE_BODY_BYTES_MAX} bytes");
                return Err(ClientError::Unexpected { url: url.to_owned(), cause });
            }
        }
    }
}
