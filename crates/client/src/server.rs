//! The server itself (`/v1/server`): what it is, and draining it.

use bytes::Bytes;
use http::Method;
use serde_json::value::RawValue;

use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

const DRAIN: &str = "/v1/server/drain";

impl Client {
    /// Returns what the server is, as JSON text: version, start time, state, and the workers that a drain waits for.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn server(&self) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::get("/v1/server")).await
    }

    /// Drains the server: it accepts jobs and hands out none. Returns the server as [`Client::server`] does.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn drain_server(&self) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::post(DRAIN, Bytes::new())).await
    }

    /// Ends the drain of the server, if there is one.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn end_server_drain(&self) -> Result<(), ClientError> {
        self.transport.bytes(RequestBuilder::new(Method::DELETE, DRAIN)).await.map(|_| ())
    }
}
