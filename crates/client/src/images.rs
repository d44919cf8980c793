//! Container images that the server builds.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde::Deserialize;

use crate::transport::{RequestBuilder, ResponseStream};
use crate::{Client, ClientError, segment};

/// Time to upload the largest folder over a slow line.
const UPLOAD_TIME_MAX: Duration = Duration::from_hours(1);
/// The longest line of the server; the daemon's own are shorter.
const LINE_BYTES_MAX: usize = 1 << 20;

/// What the server says of a build.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildNews {
    /// A piece of the output.
    Text(String),
    /// The name of the image. Nothing follows.
    Image(String),
    /// Why there is no image. Nothing follows.
    Error(String),
}

/// A build in progress. Its drop ends the build.
pub struct Build {
    pieces: ResponseStream,
    unread: Vec<u8>,
    url: &'static str,
}

impl Client {
    /// Builds an image of a gzipped tar with a `Dockerfile`.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn build_image(&self, name: &str, context: Bytes) -> Result<Build, ClientError> {
        let path = format!("/v1/images?name={}", segment(name));
        let call = RequestBuilder::new(Method::POST, &path).held(UPLOAD_TIME_MAX);
        let call = RequestBuilder { body: Some(context), content_type: "application/gzip", ..call };
        let pieces = self.transport.pieces(call).await?;
        Ok(Build { pieces, unread: Vec::new(), url: "/v1/images" })
    }
}

impl Build {
    /// What the server says next; `None` at the end, also if the server ended the connection before the result.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the connection broke, or a line is not one of a build.
    pub async fn next(&mut self) -> Result<Option<BuildNews>, ClientError> {
        loop {
            while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return serde_json::from_slice(&line)
                    .map(Some)
                    .map_err(|error| self.unexpected(error.to_string()));
            }
            if self.unread.len() > LINE_BYTES_MAX {
                return Err(self.unexpected(format!("a line has more than {LINE_BYTES_MAX} bytes")));
            }
            let Some(piece) = self.pieces.next().await? else { return Ok(None) };
            self.unread.extend_from_slice(&piece);
        }
    }

    fn unexpected(&self, cause: String) -> ClientError {
        ClientError::Unexpected { url: self.url.to_owned(), cause }
    }
}
