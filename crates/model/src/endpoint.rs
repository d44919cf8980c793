//! An endpoint: a queue with a template for its workers and rules for their number.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{EndpointId, EndpointNo, JobState, Millis, TemplateId};

/// What makes the fleet grow (management API, `scalerType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ScalerType {
    /// Grow when the oldest waiting job has waited `scalerValue` seconds.
    #[default]
    QueueDelay,
    /// One worker for every `scalerValue` jobs.
    RequestCount,
}

/// Which reasons send a job back to the queue by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryOn {
    /// The worker that held it was lost.
    WorkerLost,
    /// Its handler reported an error.
    HandlerError,
}

/// Who runs an endpoint's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Provider {
    /// Child processes of this machine.
    #[default]
    Process,
    /// Containers of a Docker daemon.
    Docker,
    /// Pods of a Kubernetes cluster.
    Kubernetes,
    /// Nobody: workers come from outside with a worker token.
    External,
}

/// When a change counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Durability {
    /// Written before its reply and synced within 100 ms: survives a killed process, not a power cut.
    Buffered,
    /// Synced to disk before its reply.
    #[default]
    Synced,
}

/// What a poll of a job's stream is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamShape {
    /// A bare array of chunks.
    #[default]
    Array,
    /// An object with the job's state and its chunks, as client SDKs expect it.
    Object,
}

/// What the receiver of a webhook can be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookEvent {
    /// The job completed.
    Completed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It ran longer than it may.
    TimedOut,
    /// It runs, and its worker said how far it is.
    Progress,
}

impl WebhookEvent {
    /// The ends of a job: what is told where nobody says otherwise.
    pub const ENDS: [Self; 4] = [Self::Completed, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// What a job in this state is an event of; none while it waits.
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

    /// Its name on the wire.
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

fn every_end() -> Vec<WebhookEvent> {
    WebhookEvent::ENDS.to_vec()
}

/// The hardware class that an endpoint asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ComputeType {
    /// Workers with a GPU.
    #[default]
    Gpu,
    /// Workers without.
    Cpu,
}

/// The numbers of workers of an endpoint before it was paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PausedFrom {
    /// Workers kept even when there was nothing to do.
    pub workers_min: u32,
    /// The most workers.
    pub workers_max: u32,
}

/// An endpoint's record. The JSON names are those of the management API; this is also its stored form, where
/// a field that an older version did not write takes its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The public id.
    pub id: EndpointId,
    /// The number under which the store keeps its jobs. Never shown to clients.
    pub no: EndpointNo,
    /// A name for people; at most 191 characters.
    pub name: String,
    /// A second address under `/v2`.
    #[serde(default)]
    pub slug: Option<String>,
    /// The names of the models that its workers serve, for the routes of `OpenAI` clients.
    #[serde(default)]
    pub models: Vec<String>,
    /// What its workers run.
    pub template_id: TemplateId,
    /// Workers kept even when there is nothing to do.
    pub workers_min: u32,
    /// The most workers; 0 pauses the endpoint.
    pub workers_max: u32,
    /// How many workers it had before it was paused; none while it is not.
    #[serde(default)]
    pub paused_from: Option<PausedFrom>,
    /// Seconds a worker may idle before it is stopped. In seconds on the wire too.
    #[serde(rename = "idleTimeout")]
    pub idle_timeout_s: u32,
    /// What makes the fleet grow.
    pub scaler_type: ScalerType,
    /// Seconds or jobs, by `scaler_type`.
    pub scaler_value: u32,
    /// The longest a job may run unless its policy says otherwise.
    pub execution_timeout_ms: u64,
    /// Automatic re-dispatches of one job.
    pub max_retries: u8,
    /// What causes them.
    pub retry_on: Vec<RetryOn>,
    /// How long a finished `/run` job is kept.
    pub result_retention_ms: u64,
    /// How long a finished `/runsync` job is kept.
    pub sync_result_retention_ms: u64,
    /// Over it, submits are refused; none means the server's limit.
    #[serde(default)]
    pub max_queue_length: Option<u64>,
    /// How long a worker may take to let go of a stopped job, and to end when it is drained; none means the server's
    /// setting.
    #[serde(default)]
    pub stop_grace_ms: Option<u64>,
    /// What a poll of a stream is answered; none means the server's setting.
    #[serde(default)]
    pub stream_shape: Option<StreamShape>,
    /// Who runs its workers.
    pub provider: Provider,
    /// Jobs at once on one worker that the scaler counts on.
    pub max_concurrency: u32,
    /// Who is told of the jobs that name no webhook themselves.
    #[serde(default)]
    pub webhook: Option<String>,
    /// What webhooks are called for.
    #[serde(default = "every_end")]
    pub webhook_events: Vec<WebhookEvent>,
    /// When a change counts as kept.
    #[serde(default)]
    pub durability: Durability,
    /// Accepted for compatibility; workers here always start the same way.
    pub flashboot: bool,
    /// The hardware class.
    pub compute_type: ComputeType,
    /// GPUs per worker.
    pub gpu_count: u32,
    /// GPU types in order of preference.
    #[serde(default)]
    pub gpu_type_ids: Vec<String>,
    /// Accepted for compatibility.
    #[serde(default)]
    pub allowed_cuda_versions: Vec<String>,
    /// Accepted for compatibility.
    #[serde(default)]
    pub min_cuda_version: Option<String>,
    /// Accepted for compatibility.
    #[serde(default)]
    pub cpu_flavor_ids: Vec<String>,
    /// Accepted for compatibility.
    #[serde(default)]
    pub data_center_ids: Vec<String>,
    /// The volume its workers see.
    #[serde(default)]
    pub network_volume_id: Option<String>,
    /// The volumes its workers see.
    #[serde(default)]
    pub network_volume_ids: Vec<String>,
    /// Processors per CPU worker: for comparison with other clouds, and no limit.
    pub vcpu_count: u32,
    /// The most memory of one worker, in bytes; none means no limit.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The most processors that one worker uses at a time, at least 0.1; none means no limit.
    #[serde(default)]
    pub vcpus: Option<f64>,
    /// Counts changes that replace workers.
    pub version: u32,
    /// When it was created.
    pub created_at: Millis,
    /// Who created it.
    #[serde(default)]
    pub user_id: String,
    /// It was deleted; its data is being removed. Nobody sees it any more.
    #[serde(default)]
    pub deleting: bool,
}

impl Endpoint {
    /// The ids of the network volumes that its workers see, each once.
    pub fn volumes(&self) -> impl Iterator<Item = &str> {
        // An empty text is what some clients send for none.
        let first = self.network_volume_id.as_deref().filter(|id| !id.is_empty());
        let others = self.network_volume_ids.iter().enumerate().filter(move |(place, id)| {
            !id.is_empty() && first != Some(id.as_str()) && !self.network_volume_ids[..*place].contains(id)
        });
        first.into_iter().chain(others.map(|(_, id)| id.as_str()))
    }
}
