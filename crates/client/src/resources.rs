//! The management API (`/v1`) with resources as JSON text: any field can be sent and is returned.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// How long the running jobs of an endpoint may take to end when it is drained and deleted.
const DRAIN_TIME_MAX: Duration = Duration::from_hours(1);

/// A kind of resource that the management API lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// Endpoints: queues with workers.
    Endpoints,
    /// Templates: what the workers of endpoints run.
    Templates,
    /// Secrets: values that templates name. Their ids are their names.
    Secrets,
    /// API keys: what clients may do.
    Keys,
    /// Credentials for registries of container images.
    RegistryAuths,
    /// Network volumes: directories that workers share.
    NetworkVolumes,
    /// Sessions: browsers that are signed in at the console. They are only listed and ended.
    Sessions,
}

impl Collection {
    fn path(self) -> &'static str {
        match self {
            Self::Endpoints => "/v1/endpoints",
            Self::Templates => "/v1/templates",
            Self::Secrets => "/v1/secrets",
            Self::Keys => "/v1/apikeys",
            Self::RegistryAuths => "/v1/containerregistryauth",
            Self::NetworkVolumes => "/v1/networkvolumes",
            Self::Sessions => "/v1/sessions",
        }
    }
}

impl fmt::Display for Collection {
    /// The name of one resource of the kind, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Endpoints => "endpoint",
            Self::Templates => "template",
            Self::Secrets => "secret",
            Self::Keys => "key",
            Self::RegistryAuths => "registry credentials",
            Self::NetworkVolumes => "network volume",
            Self::Sessions => "session",
        })
    }
}

impl Client {
    /// Returns every resource of a collection, each as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn list(&self, of: Collection) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get(of.path())).await
    }

    /// Returns the computers that run workers, each as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn machines(&self) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get("/v1/machines")).await
    }

    /// Returns the servers that share the database, each as JSON text.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn nodes(&self) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport.json(RequestBuilder::get("/v1/nodes")).await
    }

    /// Returns one resource; `query` is empty or selects what else to show.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn get(&self, of: Collection, id: &str, query: &str) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::get(&format!("{}/{}?{query}", of.path(), segment(id)))).await
    }

    /// Makes a resource from the members of a JSON object, and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn create(&self, of: Collection, members: Bytes) -> Result<Box<RawValue>, ClientError> {
        self.transport.json(RequestBuilder::post(of.path(), members)).await
    }

    /// Changes the fields that are sent, and returns the resource.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
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

    /// Deletes a resource. With `drain` the running jobs of an endpoint end first.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn delete_from(&self, of: Collection, id: &str, drain: bool) -> Result<(), ClientError> {
        let path = format!("{}/{}{}", of.path(), segment(id), if drain { "?drain=true" } else { "" });
        let wait = if drain { DRAIN_TIME_MAX } else { Duration::ZERO };
        self.transport.bytes(RequestBuilder::new(Method::DELETE, &path).held(wait)).await.map(|_| ())
    }

    /// Whether the server knows the key. The key needs no particular permission.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn knows_the_key(&self) -> Result<bool, ClientError> {
        // There is no such route: the server answers 401 without a valid key, and 404 with one.
        match self.transport.bytes(RequestBuilder::get("/v1")).await {
            Err(ClientError::Refused { status: 401, .. }) => Ok(false),
            Ok(_) | Err(ClientError::Refused { status: 404, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns the server's metrics, in the text format of Prometheus.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn metrics(&self) -> Result<String, ClientError> {
        let page = self.transport.bytes(RequestBuilder::get("/metrics")).await?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }
}
