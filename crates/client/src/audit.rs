//! The audit log: who changed what.

use serde_json::value::RawValue;

use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

impl Client {
    /// Returns entries of the audit log, newest first, each as JSON text. The query is that of the route, such as
    /// `limit=20&resource=endpoints`.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn audit(&self, query: &str) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("/v1/audit?{query}"))).await
    }
}
