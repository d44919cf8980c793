//! Connects the pure queue of each endpoint with requests, the store and workers.
//!
//! One actor owns each endpoint's queue. One committer per shard makes the changes of many requests durable in one
//! batch, and then releases their replies.
//!
//! The public interfaces, each with one responsibility:
//!
//! | Interface | Responsibility |
//! |---|---|
//! | [`Engine`] | start, shutdown, and the list of endpoints |
//! | [`EndpointHandle`] | identity and settings of one endpoint |
//! | [`Jobs`] | what clients do with the jobs of one endpoint |
//! | [`Balancer`] | what clients and workers of a load-balancing endpoint do, in place of jobs |
//! | [`Workers`] | what workers and their supervisor do at one endpoint |
//! | [`Catalog`] | templates, network volumes, registry credentials, webhook secrets |
//! | [`Keys`] | API keys and their owners |
//! | [`Sessions`] | sessions of the console, and the codes that open them |

mod actor;
mod admitted_workers;
mod api;
mod balancer;
mod bulk;
mod capacity;
mod catalog;
mod change_note;
mod chunk;
mod code_paths;
mod committer;
mod drain;
mod endpoint_shared;
mod engine;
mod failures;
mod gpu_pool;
mod handle;
mod history;
mod job_feed;
mod job_json;
mod jobs;
mod keys;
mod metering;
mod metrics;
mod owner_use;
mod payload_budget;
mod payload_cache;
mod read_faults;
mod runtime;
mod secrets;
mod services;
mod sessions;
mod settings;
mod space;
mod stop_signals;
mod store_health;
mod stream_tail;
mod supervisor;
mod traces;
mod tracked_key;
mod webhooks;
mod workers;

pub(crate) use catalog::json_rows::StoredJson;

pub use api::{
    Accepted, CatalogError, EndpointError, FleetView, Health, JobFilter, JobPage, JobSnapshot, Outcome,
    StreamFrom, StreamPage, StreamSize, Submission, TakeRequest, TakenJob, WorkerView,
};
pub use balancer::{
    BalancedServer, Balancer, BalancerMetrics, BalancerOutcome, Deadline, HealthNote, Link, LinkStream,
    Links, NotAdmitted, RequestBody, RequestSlot,
};
pub use bulk::{BULK_IDS_MAX, BulkAction, BulkMoment, BulkSelection, BulkState, BulkTask, BulkTasks};
pub use capacity::Capacity;
pub use catalog::Catalog;
pub use catalog::versions::{EndpointVersion, FieldChange, VERSIONS_MAX, VersionContent, VersionEntry};
pub use catalog::webhook_secrets::NewWebhookSecret;
pub use change_note::{ChangeNote, noted, noted_as_here};
pub use chunk::{Chunk, Seam, StreamChunk};
pub use drain::DrainProgress;
pub use engine::deployments::{Deployed, NewVersion};
pub use engine::memory::EngineMemory;
pub use engine::payload_place::claim_payloads;
pub use engine::{Engine, EngineParts};
pub use gpu_pool::{GpuStatus, PooledGpu};
pub use handle::EndpointHandle;
pub use job_feed::{ChangedJob, JobChanges, JobCounts};
pub use job_json::{write_json_string, write_record, write_record_members};
pub use jobs::Jobs;
pub use jobs::follow::{FollowEvent, Follower};
pub use jobs::search::JobSearch;
pub use jobs::webhooks::DeliveryFilter;
pub use keys::Keys;
pub use longshore_fleet::{
    CauseCode, CauseDetail, Explanation, InLine, Severity, WaitAction, WaitCause, WaitEstimate,
    may_send_again, problem,
};
pub use longshore_launch::WorkerUsage;
pub use longshore_queue::{JobConditions, Refusal, StateCounts};
pub use longshore_store::LogLine;
pub use metering::{JobUsage, Usage, UsageKind, UsageSheet};
pub use metrics::{
    EXPONENTIAL_SCHEMA, EndpointMetrics, EngineMetrics, EventCounts, Exemplar, ExitKind, ExponentialSnapshot,
    Histogram, HistogramSnapshot, RetryReason, SubmitRefusal, WebhookOutcome,
};
pub use owner_use::{BUSIEST_OWNERS, Use};
pub use payload_budget::{BudgetPermit, PayloadBudget};
pub use runtime::{BoxTask, Runtime, TokioRuntime};
pub use secrets::{Resealed, check_keys, reseal};
pub use sessions::{OpenSession, OpenedSession, SessionLimits, Sessions};
pub use settings::EngineSettings;
pub use supervisor::{FleetStatus, WorkerSettings, WorkerStatus};
pub use traces::{ForwardedSpan, RequestPlace, RequestSpan, Sampling, TraceExport, TraceSettings};
pub use tracked_key::{ClientAddress, TrackedKey};
pub use webhooks::log::{
    Delivery, DeliveryAttempt, DeliveryState, LogFuture, MemoryWebhookLog, QueuedWebhookLog, WebhookLog,
    WebhookLogRequest, open_webhook_log, parse_webhook_id, webhook_id,
};
pub use webhooks::signing::WebhookSecret;
pub use webhooks::{
    BreakerSettings, HttpTransport, PausedReceiver, TransportError, TransportFuture, TransportResponse,
    WebhookRetries, WebhookSettings, WebhookTransport,
};
pub use workers::Workers;
