//! An endpoint: a queue, the template of its workers, and the rules for their number.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::START_PATIENCE_MS_MIN;
use crate::{EndpointId, EndpointNo, JobState, LbSettings, Millis, TemplateId};

/// How an endpoint passes work to its workers. It cannot change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum EndpointType {
    /// Clients submit jobs to a queue, from which workers take them.
    #[default]
    Queue,
    /// Each worker is an HTTP server, to which requests are forwarded.
    Lb,
}

/// The rule by which a fleet grows (management API, `scalerType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScalerType {
    /// One more worker for every `scalerValue` seconds that the oldest job has waited.
    #[default]
    QueueDelay,
    /// One worker for every `scalerValue` queued or running jobs.
    RequestCount,
    /// Grows as `QueueDelay`. An idle worker is kept for the usual time between jobs, from `idleTimeout` to `idleTimeoutMax`.
    IdleGaps,
}

/// A reason for which a job is retried automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryOn {
    /// The worker that ran the job was lost.
    WorkerLost,
    /// The handler reported an error.
    HandlerError,
}

/// Where an endpoint's workers run. The provider selects the launcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Provider {
    /// Managed processes of the server's computer.
    #[default]
    Process,
    /// Containers of a Docker daemon.
    Docker,
    /// Pods of a Kubernetes cluster.
    Kubernetes,
    /// External workers alone: each brings a worker token.
    External,
}

impl Provider {
    /// The provider's name in the management API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Docker => "docker",
            Self::Kubernetes => "kubernetes",
            Self::External => "external",
        }
    }
}

/// When a change of a job is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Durability {
    /// After the write; the sync follows within 100 ms. Survives a killed process, not a power cut.
    Buffered,
    /// After the sync to disk.
    #[default]
    Synced,
}

/// The shape of the response to a poll of a job's stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamShape {
    /// A JSON array of chunks.
    #[default]
    Array,
    /// An object with the job's state and its chunks, as client SDKs expect it.
    Object,
}

/// An event that a webhook call can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookEvent {
    /// The job became `COMPLETED`.
    Completed,
    /// The job became `FAILED`.
    Failed,
    /// The job became `CANCELLED`.
    Cancelled,
    /// The job became `TIMED_OUT`.
    TimedOut,
    /// The worker of a running job reported a progress value.
    Progress,
}

impl WebhookEvent {
    /// The ends of a job: the events that are reported by default.
    pub const ENDS: [Self; 4] = [Self::Completed, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// The event of a job in this state; `None` for a queued job.
    pub fn of(state: JobState) -> Option<Self> {
        match state {
            JobState::InQueue => None,
            JobState::InProgress => Some(Self::Progress),
            JobState::Completed => Some(Self::Completed),
            JobState::Failed => Some(Self::Failed),
            JobState::Cancelled => Some(Self::Cancelled),
            JobState::TimedOut => Some(Self::TimedOut),
        }
    }

    /// The event's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Progress => "progress",
        }
    }
}

/// The [`Endpoint::idle_timeout_max_s`] of records of earlier versions: an hour.
fn default_idle_timeout_max_s() -> u32 {
    3_600
}

/// The [`Endpoint::start_patience_ms`] of records of earlier versions: 10 min.
fn default_start_patience_ms() -> u64 {
    600_000
}

/// Reads [`Endpoint::start_patience_ms`]. Records of earlier versions, also those that a version of an endpoint or a
/// backup brings back, can have a shorter time, in which no worker becomes ready.
fn start_patience_ms<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    u64::deserialize(deserializer).map(|ms| ms.max(START_PATIENCE_MS_MIN))
}

/// The [`Endpoint::keep_failure_texts`] of records of earlier versions.
fn default_keep_failure_texts() -> bool {
    true
}

fn every_end() -> Vec<WebhookEvent> {
    WebhookEvent::ENDS.to_vec()
}

/// The hardware class that an endpoint asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ComputeType {
    /// Workers with `gpuCount` GPUs.
    #[default]
    Gpu,
    /// Workers without a GPU.
    Cpu,
}

/// The numbers of workers of an endpoint before it was paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PausedFrom {
    /// `workersMin` before the pause.
    pub workers_min: u32,
    /// `workersMax` before the pause.
    pub workers_max: u32,
}

/// The objectives of an endpoint: how fast its jobs are to start, and how many are to complete.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Objectives {
    /// The longest time in the queue that counts as good, in ms; `None` without an objective for the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The share of deliveries that are to be no later than `delay_ms`, above 0 and below 1.
    #[serde(default = "Objectives::delay_target_default")]
    pub delay_target: f64,
    /// The share of ended jobs that are to complete, above 0 and below 1. Cancelled jobs do not count.
    #[serde(default = "Objectives::success_target_default")]
    pub success_target: f64,
    /// The number of days that the shares are of, up to now; 1 to 30.
    #[serde(default = "Objectives::window_days_default")]
    pub window_days: u32,
}

impl Objectives {
    fn delay_target_default() -> f64 {
        0.95
    }

    fn success_target_default() -> f64 {
        0.99
    }

    fn window_days_default() -> u32 {
        30
    }
}

/// An endpoint's record. The JSON names are those of the management API; this is also its stored form, where
/// a field that an older version did not write takes its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The public id, in paths under `/v2` and `/v1`.
    pub id: EndpointId,
    /// The number under which the store keeps its jobs. Never shown to clients.
    pub no: EndpointNo,
    /// A name for people; at most 191 characters, not unique.
    pub name: String,
    /// A second address under `/v2`, unique regardless of case; `None` without one. See [`crate::is_slug`].
    #[serde(default)]
    pub slug: Option<String>,
    /// The names of the models that its workers serve, for the routes of `OpenAI` clients.
    #[serde(default)]
    pub models: Vec<String>,
    /// How work reaches its workers.
    #[serde(default, rename = "type")]
    pub endpoint_type: EndpointType,
    /// How requests are forwarded to its workers. `None` for an endpoint with a queue.
    #[serde(default)]
    pub lb: Option<LbSettings>,
    /// The template that its workers run.
    pub template_id: TemplateId,
    /// The number of workers that are kept while no job is queued.
    pub workers_min: u32,
    /// The largest number of workers; 0 pauses the endpoint.
    pub workers_max: u32,
    /// The numbers of workers before the pause; `None` while the endpoint is not paused.
    #[serde(default)]
    pub paused_from: Option<PausedFrom>,
    /// How long a worker may idle before it is stopped, in seconds; in seconds on the wire too.
    #[serde(rename = "idleTimeout")]
    pub idle_timeout_s: u32,
    /// The longest time that `IDLE_GAPS` keeps an idle worker, in seconds. Without effect for other scalers.
    #[serde(rename = "idleTimeoutMax", default = "default_idle_timeout_max_s")]
    pub idle_timeout_max_s: u32,
    /// How long a worker's first take is waited for after its start or adoption, in ms, at least
    /// [`START_PATIENCE_MS_MIN`]. Then the worker is replaced.
    #[serde(default = "default_start_patience_ms", deserialize_with = "start_patience_ms")]
    pub start_patience_ms: u64,
    /// The rule by which the fleet grows.
    pub scaler_type: ScalerType,
    /// Seconds (`QUEUE_DELAY`, `IDLE_GAPS`) or jobs (`REQUEST_COUNT`) per worker, by `scaler_type`.
    pub scaler_value: u32,
    /// The longest execution of a job whose policy sets none, in ms.
    pub execution_timeout_ms: u64,
    /// The largest number of automatic retries of one job.
    pub max_retries: u8,
    /// The reasons for an automatic retry; empty disables automatic retries.
    pub retry_on: Vec<RetryOn>,
    /// How long a terminal `/run` job is stored, in ms.
    pub result_retention_ms: u64,
    /// How long a terminal `/runsync` job is stored, in ms.
    pub sync_result_retention_ms: u64,
    /// The largest number of queued jobs: above it, submits are rejected. `None`: the server's limit.
    #[serde(default)]
    pub max_queue_length: Option<u64>,
    /// How long a worker may take to release a stopped job, and to exit after it was drained, in ms. `None`: the
    /// server's setting.
    #[serde(default)]
    pub stop_grace_ms: Option<u64>,
    /// The shape of the response to a poll of a stream. `None`: the server's setting.
    #[serde(default)]
    pub stream_shape: Option<StreamShape>,
    /// Where its workers run.
    pub provider: Provider,
    /// The number of concurrent jobs of one worker that the scaler assumes.
    pub max_concurrency: u32,
    /// The webhook URL of jobs that name none; `None`: such jobs have no webhook.
    #[serde(default)]
    pub webhook: Option<String>,
    /// The events that webhook calls report.
    #[serde(default = "every_end")]
    pub webhook_events: Vec<WebhookEvent>,
    /// When a change of a job is acknowledged.
    #[serde(default)]
    pub durability: Durability,
    /// Whether workers may be started as forks of a process that has imported what they import.
    pub flashboot: bool,
    /// Whether its workers get GPUs.
    pub compute_type: ComputeType,
    /// The number of GPUs per worker, all of one type; ignored for `CPU`.
    pub gpu_count: u32,
    /// GPU types in order of preference; empty means any.
    #[serde(default)]
    pub gpu_type_ids: Vec<String>,
    /// Accepted for compatibility; has no effect.
    #[serde(default)]
    pub allowed_cuda_versions: Vec<String>,
    /// Accepted for compatibility; has no effect.
    #[serde(default)]
    pub min_cuda_version: Option<String>,
    /// Accepted for compatibility; has no effect.
    #[serde(default)]
    pub cpu_flavor_ids: Vec<String>,
    /// Accepted for compatibility; has no effect.
    #[serde(default)]
    pub data_center_ids: Vec<String>,
    /// The id of the first network volume of its workers; an empty text counts as `None`.
    #[serde(default)]
    pub network_volume_id: Option<String>,
    /// The ids of further network volumes of its workers; empty texts are ignored.
    #[serde(default)]
    pub network_volume_ids: Vec<String>,
    /// Processors per CPU worker, for comparison with other clouds; limits nothing.
    pub vcpu_count: u32,
    /// The largest memory of one worker, in bytes; `None`: no limit.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The number of processors that one worker may use, at least 0.1; `None`: no limit.
    #[serde(default)]
    pub vcpus: Option<f64>,
    /// Whether messages of jobs' errors are stored with the failures of the endpoint.
    #[serde(default = "default_keep_failure_texts")]
    pub keep_failure_texts: bool,
    /// An example of a request's body: JSON text. `None` without one.
    #[serde(default)]
    pub example: Option<String>,
    /// The JSON Schema of a request's `input`: JSON text. `None` without one.
    #[serde(default)]
    pub input_schema: Option<String>,
    /// The objectives of the endpoint; `None` without any.
    #[serde(default)]
    pub slo: Option<Objectives>,
    /// The variables of its template's `env` that the last deploy set, ascending. The next deploy removes those that it
    /// does not name.
    #[serde(default)]
    pub deployed_env: Vec<String>,
    /// Counts the changes that replace the workers, from 1.
    pub version: u32,
    /// When the endpoint was created.
    pub created_at: Millis,
    /// The user that created the endpoint; empty if unknown.
    #[serde(default)]
    pub user_id: String,
    /// The endpoint was deleted and is no longer visible; its jobs are being removed.
    #[serde(default)]
    pub deleting: bool,
}

impl Endpoint {
    /// The settings by which requests are forwarded; `None` for an endpoint with a queue.
    pub fn balances(&self) -> Option<&LbSettings> {
        self.lb.as_ref().filter(|_| self.endpoint_type == EndpointType::Lb)
    }

    /// The ports that its settings name for requests and for the health check. Workers learn them at their start.
    pub fn lb_ports(&self) -> Option<(Option<u16>, Option<u16>)> {
        self.balances().map(|lb| (lb.port, lb.health_port))
    }

    /// The ids of the network volumes of its workers, without duplicates.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        // Some clients send an empty text for no volume.
        let first = self.network_volume_id.as_deref().filter(|id| !id.is_empty());
        let others = self.network_volume_ids.iter().enumerate().filter(move |(place, id)| {
            !id.is_empty() && first != Some(id.as_str()) && !self.network_volume_ids[..*place].contains(id)
        });
        first.into_iter().chain(others.map(|(_, id)| id.as_str()))
    }
}
