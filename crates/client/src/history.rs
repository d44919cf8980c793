//! What endpoints did over time (`/v1/endpoints/{endpoint}/history`).

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
}
