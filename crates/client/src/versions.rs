//! Deploys to an endpoint, and its versions.

use bytes::Bytes;
use longshore_model::EndpointId;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError, Endpoint, EndpointSpec, TemplateSpec};

/// What a deploy changes. Only fields with a value are sent; all others stay.
#[derive(Clone, Default, Serialize)]
pub struct DeploySpec {
    /// What workers are started with. Variables of `env` that no deploy has set stay.
    pub template: TemplateSpec,
    /// The endpoint's own fields.
    pub endpoint: EndpointSpec,
}

/// The result of a deploy.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Deployed {
    /// The id of the deployed endpoint.
    pub id: EndpointId,
    /// The endpoint's version after the deploy.
    pub version: u32,
    /// Whether the deploy changed anything.
    pub changed: bool,
}

/// One change of an endpoint.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionEntry {
    /// The endpoint's version since the change.
    pub version: u32,
    /// The hash of the deployed code that the version runs; `None` if it runs none.
    pub code_hash: Option<String>,
}

impl Client {
    /// Changes the program and the fields of an endpoint in one commit.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn deploy(&self, endpoint: EndpointId, spec: &DeploySpec) -> Result<Deployed, ClientError> {
        let body = serde_json::to_vec(spec)
            .map_err(|error| ClientError::Unusable(format!("the request is not JSON: {error}")))?;
        self.transport
            .json(RequestBuilder::post(&format!("/v1/endpoints/{endpoint}/deploy"), Bytes::from(body)))
            .await
    }

    /// Returns the kept changes of the endpoint with this id or slug, newest first, each as JSON text of a
    /// [`VersionEntry`].
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn versions(&self, endpoint: &str) -> Result<Vec<Box<RawValue>>, ClientError> {
        self.transport
            .json(RequestBuilder::get(&format!("/v1/endpoints/{}/versions", segment(endpoint))))
            .await
    }

    /// Brings a version of an endpoint back, as a new version unless nothing differs, and returns the endpoint.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn restore_version(&self, endpoint: EndpointId, version: u32) -> Result<Endpoint, ClientError> {
        let path = format!("/v1/endpoints/{endpoint}/versions/{version}/restore");
        self.transport.json(RequestBuilder::post(&path, Bytes::new())).await
    }
}
