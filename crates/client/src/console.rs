//! Codes that sign a browser in at the console.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// A code that signs a browser in once, within a minute.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsoleCode {
    /// The code: a secret.
    pub code: String,
    /// When the code is refused, RFC 3339.
    pub expires_at: String,
    /// The address of the console with the code.
    pub url: String,
}

impl fmt::Debug for ConsoleCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleCode").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a code that signs a browser in with this client's key.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn console_code(&self) -> Result<ConsoleCode, ClientError> {
        self.transport.json(RequestBuilder::post("/v1/console-codes", Bytes::new())).await
    }
}
