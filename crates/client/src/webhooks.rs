//! Calls of webhooks.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// Some calls of webhooks, the latest attempt first.
#[derive(Debug, Deserialize)]
pub struct WebhookPage {
    /// The calls, each as JSON text.
    pub webhooks: Vec<Box<RawValue>>,
    /// The cursor of the next page; `None` on the last page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The number of calls of all endpoints that match; `None` for one endpoint.
    #[serde(default)]
    pub of: Option<u64>,
    /// The number of endpoints whose log could not be read in time.
    #[serde(default)]
    pub unread: u64,
}

/// What became of failed calls that were to be delivered again.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct RedeliveredWebhooks {
    /// The number of calls that are delivered again.
    pub redelivered: u64,
    /// The number of calls that cannot be, because their jobs are gone.
    pub gone: u64,
    /// The number of endpoints whose calls could not be read or delivered again; 0 for one endpoint.
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

    /// Delivers the failed calls again of the endpoint with this id or slug, or of all endpoints. The query is that of the route,
    /// such as `since=2030-01-31T12:00:00Z`; without one, all failed calls are delivered again.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn redeliver_webhooks(
        &self,
        endpoint: Option<&str>,
        query: &str,
    ) -> Result<RedeliveredWebhooks, ClientError> {
        let path = endpoint.map_or_else(
            || format!("/v1/webhooks/redeliver?{query}"),
            |endpoint| format!("/v2/{}/webhooks/redeliver?{query}", segment(endpoint)),
        );
        self.transport.json(RequestBuilder::post(&path, Bytes::new())).await
    }
}
