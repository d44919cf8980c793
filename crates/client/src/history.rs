//! What endpoints did over time, and why their jobs failed.

use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

impl Client {
    /// Returns what the endpoint with this id or slug did, as JSON text. The query is that of the route, such as
    /// `last=3600000&step=60000`.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn history_text(&self, endpoint: &str, query: &str) -> Result<Box<RawValue>, ClientError> {
        let path = format!("/v1/endpoints/{}/history?{query}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path)).await
    }

    /// Returns the groups of failures of the endpoint with this id or slug since a time in RFC 3339, as JSON texts.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn failure_texts(
        &self,
        endpoint: &str,
        since: &str,
    ) -> Result<Vec<Box<RawValue>>, ClientError> {
        let path = format!("/v1/endpoints/{}/failures?since={since}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path)).await
    }
}
