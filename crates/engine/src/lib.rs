//! Where the pure machines meet the world.
//!
//! One actor owns each endpoint's queue; one committer per shard writes what the actors decided, many commands
//! in one durable batch, and only then lets the replies leave.

mod actor;
mod api;
mod catalog;
mod chunk;
mod code_paths;
mod committer;
mod endpoint_shared;
mod engine;
mod gpu_pool;
mod handle;
mod job_json;
mod metering;
mod metrics;
mod owner_use;
mod payload_budget;
mod payload_cache;
mod read_faults;
mod runtime;
mod secrets;
mod settings;
mod stop_signals;
mod stream_tail;
mod supervisor;
mod tracked_key;
mod webhooks;

pub use api::{
    Accepted, CatalogError, EndpointError, FleetView, Health, JobFilter, JobPage, JobSnapshot, Outcome,
    StreamFrom, StreamPage, Submission, TakeRequest, TakenJob, WorkerView,
};
pub use chunk::{Chunk, Seam, StreamChunk};
pub use engine::json_rows::StoredJson;
pub use engine::webhooks::NewWebhookSecret;
pub use engine::{Engine, EngineParts};
pub use handle::EndpointHandle;
pub use handle::follow::{FollowEvent, Follower};
pub use handle::webhooks::DeliveryFilter;
pub use job_json::{write_json_string, write_record, write_record_members};
pub use longshore_queue::Refusal;
pub use metering::{JobUsage, Usage, UsageKind, UsageSheet};
pub use metrics::{EndpointMetrics, EngineMetrics, Histogram, HistogramSnapshot};
pub use owner_use::{BUSIEST_OWNERS, Use};
pub use payload_budget::{BudgetPermit, PayloadBudget};
pub use runtime::{BoxTask, Runtime, TokioRuntime};
pub use secrets::{Resealed, reseal};
pub use settings::EngineSettings;
pub use supervisor::{FleetStatus, WorkerSettings, WorkerStatus};
pub use tracked_key::{ClientAddress, TrackedKey};
pub use webhooks::log::{
    Delivery, DeliveryAttempt, DeliveryState, DirWebhookLog, LogFuture, MemoryWebhookLog, WebhookLog,
    parse_webhook_id, webhook_id,
};
pub use webhooks::signing::WebhookSecret;
pub use webhooks::{
    BreakerSettings, HttpTransport, TransportError, TransportFuture, TransportResponse, WebhookRetries,
    WebhookSettings, WebhookTransport,
};
