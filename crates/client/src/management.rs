//! The management API (`/v1`): templates and endpoints.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Method;
use longshore_model::{
    ComputeType, Durability, EndpointId, EndpointType, EnvValue, Objectives, PausedFrom, Provider, RetryOn,
    ScalerType, StreamShape, TemplateId, WebhookEvent,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::json_text::JsonText;
use crate::segment::segment;
use crate::transport::RequestBuilder;
use crate::{Client, ClientError};

/// A template as the server shows it, without the values of its environment.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The id, which endpoints name.
    pub id: TemplateId,
    /// The name, unique on the server.
    pub name: String,
}

/// The fields of a template to make or to change. Only fields with a value are sent; on an update the others stay.
///
/// Not `Debug`: the values of `env` are secrets.
#[derive(Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSpec {
    /// A name that is unique on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The container image; a label for process workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    /// The first part of the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_entrypoint: Option<Vec<String>>,
    /// The last part of the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub docker_start_cmd: Option<Vec<String>>,
    /// The folder that a process worker runs in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// The worker's environment; replaces the previous one as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, EnvValue>>,
    /// The id of the credentials for the image's registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_registry_auth_id: Option<String>,
    /// Whether the template is for endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_serverless: Option<bool>,
}

/// An endpoint as the server shows it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The id, the endpoint's first address under `/v2`.
    pub id: EndpointId,
    /// The name, for people.
    pub name: String,
    /// The second address under `/v2`.
    #[serde(default)]
    pub slug: Option<String>,
    /// How work reaches the workers.
    #[serde(default, rename = "type")]
    pub endpoint_type: EndpointType,
    /// The template of the workers.
    pub template_id: TemplateId,
    /// The number of changes that replaced workers.
    pub version: u32,
    /// Workers that run even without jobs.
    pub workers_min: u32,
    /// Most workers that run at a time.
    pub workers_max: u32,
    /// The limits before the endpoint was paused; `None` if it is not paused.
    #[serde(default)]
    pub paused_from: Option<PausedFrom>,
    /// The names of the variables of its template. Their values are not shown.
    #[serde(default)]
    #[expect(clippy::zero_sized_map_values, reason = "the form of the server's JSON")]
    pub env: BTreeMap<String, IgnoredAny>,
    /// The names of the variables that the last deploy set.
    #[serde(default)]
    pub deployed_env: Vec<String>,
}

/// The fields of an endpoint to make or to change. Only fields with a value are sent; on an update the others stay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndpointSpec {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A second address under `/v2`, unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    /// How work reaches the workers. Only for an endpoint to make.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub endpoint_type: Option<EndpointType>,
    /// How requests are forwarded to the workers of an endpoint of the type `LB`. The server checks the fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lb: Option<serde_json::Map<String, serde_json::Value>>,
    /// The template of the workers. Not read from `longshore.toml`.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<TemplateId>,
    /// What runs the workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Workers that run even without jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_min: Option<u32>,
    /// Most workers that run at a time; 0 pauses the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_max: Option<u32>,
    /// How long a worker may be idle before it is stopped, in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<u32>,
    /// The longest time that the scaler `IDLE_GAPS` keeps an idle worker, in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_max: Option<u32>,
    /// What makes the fleet grow, and how long idle workers are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaler_type: Option<ScalerType>,
    /// Seconds or jobs, depending on `scaler_type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scaler_value: Option<u32>,
    /// Longest execution of a job whose policy sets nothing, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// Most automatic retries of one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u8>,
    /// The failures that are retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Vec<RetryOn>>,
    /// When a change counts as durable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Concurrent jobs of one worker that the scaler expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// How long an ended `/run` job is kept, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_retention_ms: Option<u64>,
    /// How long an ended `/runsync` job is kept, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_result_retention_ms: Option<u64>,
    /// Most queued jobs; above it submits are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queue_length: Option<u64>,
    /// Time from a worker's start to its first request for a job after which the worker is replaced, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_patience_ms: Option<u64>,
    /// Time from a job's stop signal to SIGTERM for its worker, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
    /// What polls of streams return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_shape: Option<StreamShape>,
    /// Most memory of one worker, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Most processors that one worker uses at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<f64>,
    /// The models that its workers serve, by the names that `openai` clients send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<String>>,
    /// The webhook of jobs that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The events that webhooks are called for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_events: Option<Vec<WebhookEvent>>,
    /// Whether messages of errors are stored with the groups of failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_failure_texts: Option<bool>,
    /// An example of a request's body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<JsonText>,
    /// The JSON Schema of a request's `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<JsonText>,
    /// How fast jobs are to start, and how many are to complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slo: Option<Objectives>,
    /// Accepted for compatibility; has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flashboot: Option<bool>,
    /// Whether workers get GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute_type: Option<ComputeType>,
    /// The number of GPUs of each worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// GPU types in order of preference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_type_ids: Option<Vec<String>>,
    /// Accepted for compatibility; has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_cuda_versions: Option<Vec<String>>,
    /// Accepted for compatibility; has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_cuda_version: Option<String>,
    /// Accepted for compatibility; has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_flavor_ids: Option<Vec<String>>,
    /// Accepted for compatibility; has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_center_ids: Option<Vec<String>>,
    /// The volume that its workers can use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_volume_id: Option<String>,
    /// More volumes that its workers can use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_volume_ids: Option<Vec<String>>,
    /// Processors per CPU worker, for comparison; limits nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpu_count: Option<u32>,
    /// The variables of `env` that the deploy sets which creates the endpoint. Not read from `longshore.toml`.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub deployed_env: Option<Vec<String>>,
}

impl Client {
    /// Returns every template.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn templates(&self) -> Result<Vec<Template>, ClientError> {
        self.manage(Method::GET, "/v1/templates", &()).await
    }

    /// Returns the template with this id.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn template(&self, id: TemplateId) -> Result<Template, ClientError> {
        self.manage(Method::GET, &format!("/v1/templates/{id}"), &()).await
    }

    /// Makes a template and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn create_template(&self, spec: &TemplateSpec) -> Result<Template, ClientError> {
        self.manage(Method::POST, "/v1/templates", spec).await
    }

    /// Changes a template and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn update_template(
        &self,
        id: TemplateId,
        spec: &TemplateSpec,
    ) -> Result<Template, ClientError> {
        self.manage(Method::PATCH, &format!("/v1/templates/{id}"), spec).await
    }

    /// Deletes a template that no endpoint uses.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn delete_template(&self, id: TemplateId) -> Result<(), ClientError> {
        self.delete(&format!("/v1/templates/{id}")).await
    }

    /// Returns every endpoint of the server.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn endpoints(&self) -> Result<Vec<Endpoint>, ClientError> {
        self.manage(Method::GET, "/v1/endpoints", &()).await
    }

    /// Returns the endpoint with this id or slug.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn endpoint(&self, id_or_slug: &str) -> Result<Endpoint, ClientError> {
        self.manage(Method::GET, &format!("/v1/endpoints/{}", segment(id_or_slug)), &()).await
    }

    /// Makes an endpoint and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn create_endpoint(&self, spec: &EndpointSpec) -> Result<Endpoint, ClientError> {
        self.manage(Method::POST, "/v1/endpoints", spec).await
    }

    /// Changes an endpoint and returns it.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
    pub async fn update_endpoint(
        &self,
        id: EndpointId,
        spec: &EndpointSpec,
    ) -> Result<Endpoint, ClientError> {
        self.manage(Method::PATCH, &format!("/v1/endpoints/{id}"), spec).await
    }

    /// Deletes an endpoint with its jobs and stops its workers.
    ///
    /// # Errors
    ///
    /// [`ClientError`] if the server refuses the request, cannot be reached or does not answer in time.
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
