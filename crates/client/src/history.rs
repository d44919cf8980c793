//! What endpoints did over time (`/v1/endpoints/{endpoint}/history`).

use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

impl Client {
    /// Returns what the endpoint with this id or slug did in the last `last_ms`, in steps of `step_ms` or more, as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn history_text(
        &self,
        endpoint: &str,
        last_ms: u64,
        step_ms: u64,
    ) -> Result<Box<RawValue>, ClientError> {
        let path = format!("/v1/endpoints/{}/history?last={last_ms}&step={step_ms}", segment(endpoint));
        self.transport.json(RequestBuilder::get(&path)).await
    }
}
