//! The time that workers ran, and the currency of its cost.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// The part of the answer about the key's server that is needed here.
#[derive(Deserialize)]
struct Me {
    server: ServerOfKey,
}

#[derive(Deserialize)]
struct ServerOfKey {
    #[serde(default)]
    currency: String,
}

impl Client {
    /// Returns the records of worker time, each as JSON text. The query is that of the route, such as
    /// `bucketSize=day&grouping=owner`.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn usage(&self, query: &str) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v1/billing/endpoints?{query}"))).await
    }

    /// Returns the currency of the server's prices, as a sign or a code; empty if its settings name none.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn currency(&self) -> Result<String, ClientError> {
        let me: Me = self.transport.json(RequestBuilder::get("/v1/me")).await?;
        Ok(me.server.currency)
    }
}
