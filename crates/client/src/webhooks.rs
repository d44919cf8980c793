//! Calls of webhooks.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// Some calls of webhooks, the latest attempt first.
#[derive(Debug, Deserialize)]
pub struct WebhookPage {
    /// The calls, each as JSON text.
    pub webhooks: Vec<Box<RawValue>>,
    /// The cursor of the next page of one endpoint; `None` on the last page, and for all endpoints.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The number of calls of all endpoints that match; `None` for one endpoint.
    #[serde(default)]
    pub of: Option<u64>,
    /// The number of endpoints whose log could not be read in time.
    #[serde(default)]
    pub unread: u64,
}

impl Client {
    /// Returns the calls of the endpoint with this id or slug, or of all endpoints. The query is that of the route, such as
    /// `state=FAILED&limit=20`.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn webhooks(&self, endpoint: Option<&str>, query: &str) -> Result<WebhookPage, ClientError> {
        let path = endpoint.map_or_else(
            || format!("/v1/webhooks?{query}"),
            |endpoint| format!("/v2/{}/webhooks?{query}", segment(endpoint)),
        );
        self.transport.json(RequestBuilder::get(&path)).await
    }
}
