//! The management API (`/v1`) as it is written: any field of a resource goes in and comes out as JSON text.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// A job that is running may take this long to end when an endpoint is deleted with it.
const DRAIN_TIME_MAX: Duration = Duration::from_hours(1);

/// What there are many of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Queues with workers.
    Endpoints,
    /// What workers run.
    Templates,
    /// Who may ask.
    Keys,
}

impl Collection {
    fn path(self) -> &'static str {
        match self {
            Self::Endpoints => "/v1/endpoints",
            Self::Templates => "/v1/templates",
            Self::Keys => "/v1/apikeys",
        }
    }
}

impl fmt::Display for Collection {
    /// One of them, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Endpoints => "endpoint",
            Self::Templates => "template",
            Self::Keys => "key",
        })
    }
}

impl Client {
    /// Every record of a collection.
    pub async fn list(&self, of: Collection) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get(of.path())).await
    }

    /// One record; `query` is empty or asks for more to be shown in it.
    pub async fn get(&self, of: Collection, id: &str, query: &str) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("{}/{}?{query}", of.path(), segment(id)))).await
    }

    /// Makes a record of the members of a JSON object.
    pub async fn create(&self, of: Collection, members: Bytes) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::post(of.path(), members)).await
    }

    /// Changes the members that are sent.
    pub async fn update(
        &self,
        of: Collection,
        id: &str,
        members: Bytes,
    ) -> Result<Box<RawValue>, ClientError> {
        let path = format!("{}/{}", of.path(), segment(id));
        self.transport
            .json(RequestBuilder { body: Some(members), ..RequestBuilder::new(Method::PATCH, &path) })
            .await
    }

    /// Deletes a record. With `drain` the running jobs of an endpoint end first.
    pub async fn delete_from(&self, of: Collection, id: &str, drain: bool) -> Result<(), ClientError> {
        let path = format!("{}/{}{}", of.path(), segment(id), if drain { "?drain=true" } else { "" });
        let wait = if drain { DRAIN_TIME_MAX } else { Duration::ZERO };
        self.transport.bytes(RequestBuilder::new(Method::DELETE, &path).held(wait)).await.map(|_| ())
    }

    /// Whether the server knows the key, whatever it permits.
    pub async fn knows_the_key(&self) -> Result<bool, ClientError> {
        // No such route: strangers hear 401 there as everywhere, holders of a key 404.
        match self.transport.bytes(RequestBuilder::get("/v1")).await {
            Err(ClientError::Refused { status: 401, .. }) => Ok(false),
            Ok(_) | Err(ClientError::Refused { status: 404, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The server's numbers, in the text form of Prometheus.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let page = self.transport.bytes(RequestBuilder::get("/metrics")).await?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }
}
