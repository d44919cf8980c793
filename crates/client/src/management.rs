//! The management API (`/v1`): templates and endpoints.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use longshore_model::{
    Durability, EndpointId, PausedFrom, Provider, RetryOn, ScalerType, StreamShape, TemplateId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// A template, as the server shows it. Values of its environment are never shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// Its id.
    pub id: TemplateId,
    /// Its name.
    pub name: String,
}

/// What a template is to be. Only what is set is sent; on an update the rest stays as it is.
///
/// Not `Debug`: the values of `env` are secrets.
#[derive(Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// A unique name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The container image; a label for process workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// The command line's beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_entrypoint: Option<Vec<String>>,
    /// The command line's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_start_cmd: Option<Vec<String>>,
    /// The folder in which a process worker runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// The worker's environment; replaces the old one as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Whether it is meant for endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_serverless: Option<bool>,
}

/// An endpoint, as the server shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its id.
    pub id: EndpointId,
    /// Its name.
    pub name: String,
    /// Its second address under `/v2`.
    #[serde(default)]
    pub slug: Option<String>,
    /// What its workers run.
    pub template_id: TemplateId,
    /// Counts changes that replace workers.
    pub version: u32,
    /// Workers kept even when there is nothing to do.
    pub workers_min: u32,
    /// The most workers.
    pub workers_max: u32,
    /// How many it had before it was paused.
    #[serde(default)]
    pub paused_from: Option<PausedFrom>,
}

/// What an endpoint is to be. Only what is set is sent; on an update the rest stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndpointSpec {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A second address under `/v2`, unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// What its workers run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_id: Option<TemplateId>,
    /// Who runs its workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Workers kept even when there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_min: Option<u32>,
    /// The most workers; 0 pauses the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_max: Option<u32>,
    /// Seconds a worker may idle before it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<u32>,
    /// What makes the fleet grow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaler_type: Option<ScalerType>,
    /// Seconds or jobs, by `scaler_type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaler_value: Option<u32>,
    /// The longest a job may run unless its policy says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// Automatic re-dispatches of one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u8>,
    /// What causes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Vec<RetryOn>>,
    /// When a change counts as kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Jobs at once on one worker that the scaler counts on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// How long a finished `/run` job is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_retention_ms: Option<u64>,
    /// How long a finished `/runsync` job is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_result_retention_ms: Option<u64>,
    /// Over it, submits are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queue_length: Option<u64>,
    /// From a job's stop signal to SIGTERM for its worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
    /// What polls of streams are answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_shape: Option<StreamShape>,
    /// The most memory of one worker, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The most processors that one worker uses at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<f64>,
}

impl Client {
    /// Every template.
    pub async fn templates(&self) -> Result<Vec<Template>, ClientError> {
        self.manage(Method::GET, "/v1/templates", &()).await
    }

    /// One template.
    pub async fn template(&self, id: TemplateId) -> Result<Template, ClientError> {
        self.manage(Method::GET, &format!("/v1/templates/{id}"), &()).await
    }

    /// Makes a template.
    pub async fn create_template(&self, spec: &TemplateSpec) -> Result<Template, ClientError> {
        self.manage(Method::POST, "/v1/templates", spec).await
    }

    /// Changes a template.
    pub async fn update_template(
        &self,
        id: TemplateId,
        spec: &TemplateSpec,
    ) -> Result<Template, ClientError> {
        self.manage(Method::PATCH, &format!("/v1/templates/{id}"), spec).await
    }

    /// Deletes a template that no endpoint uses.
    pub async fn delete_template(&self, id: TemplateId) -> Result<(), ClientError> {
        self.delete(&format!("/v1/templates/{id}")).await
    }

    /// Every endpoint.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, ClientError> {
        self.manage(Method::GET, "/v1/endpoints", &()).await
    }

    /// One endpoint, by id or slug.
    pub async fn endpoint(&self, id_or_slug: &str) -> Result<Endpoint, ClientError> {
        self.manage(Method::GET, &format!("/v1/endpoints/{}", segment(id_or_slug)), &()).await
    }

    /// Makes an endpoint.
    pub async fn create_endpoint(&self, spec: &EndpointSpec) -> Result<Endpoint, ClientError> {
        self.manage(Method::POST, "/v1/endpoints", spec).await
    }

    /// Changes an endpoint.
    pub async fn update_endpoint(
        &self,
        id: EndpointId,
        spec: &EndpointSpec,
    ) -> Result<Endpoint, ClientError> {
        self.manage(Method::PATCH, &format!("/v1/endpoints/{id}"), spec).await
    }

    /// Deletes an endpoint with its jobs and stops its workers.
    pub async fn delete_endpoint(&self, id: EndpointId) -> Result<(), ClientError> {
        self.delete(&format!("/v1/endpoints/{id}")).await
    }

    async fn manage<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = (method != Method::GET)
            .then(|| serde_json::to_vec(body).map(Bytes::from))
            .transpose()
            .map_err(|error| ClientError::Unusable(format!("the request is not JSON: {error}")))?;
        self.transport.json(RequestBuilder { body, ..RequestBuilder::new(method, path) }).await
    }

    async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.transport.bytes(RequestBuilder::new(Method::DELETE, path)).await.map(|_| ())
    }
}
