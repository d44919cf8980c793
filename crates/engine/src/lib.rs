//! Where the pure machines meet the world.
//!
//! One actor owns each endpoint's queue; one committer per shard writes what the actors decided, many commands
//! in one durable batch, and only then lets the replies leave.

mod actor;
mod ask;
mod catalog;
mod chores;
mod chunk;
mod code_paths;
mod committer;
mod engine;
mod gpus;
mod handle;
mod host;
mod live_key;
mod measure;
mod owner_use;
mod read_faults;
mod recent;
mod record;
mod room;
mod secrets;
mod settings;
mod shared;
mod stops;
mod supervisor;
mod tail;

pub use ask::{
    Accepted, AskError, CatalogError, FleetView, Health, JobPage, JobSnapshot, ListQuery, Outcome,
    StreamFrom, StreamPage, Submission, TakeAsk, TakenJob, WorkerView,
};
pub use chores::metering::{JobUsage, Usage, UsageKind, UsageSheet};
pub use chores::webhooks::log::{
    Delivery, DeliveryAttempt, DeliveryState, FolderHookLog, HookLog, LogFuture, MemoryHookLog,
    parse_webhook_id, webhook_id,
};
pub use chores::webhooks::signing::WebhookSecret;
pub use chores::webhooks::{
    BreakerSettings, HttpPost, Post, PostAnswer, PostError, PostFuture, WebhookRetries, WebhookSettings,
};
pub use chunk::{Chunk, Seam, StreamChunk};
pub use engine::records::Record;
pub use engine::webhooks::NewWebhookSecret;
pub use engine::{Engine, Parts};
pub use handle::EndpointHandle;
pub use handle::follow::{Follower, Happening};
pub use handle::webhooks::DeliveryQuery;
pub use host::{Host, Task, ThisMachine};
pub use live_key::{Caller, LiveKey};
pub use longshore_queue::Refusal;
pub use measure::{EndpointMetrics, EngineMetrics, Histogram, HistogramSnapshot};
pub use owner_use::{BUSIEST_OWNERS, Use};
pub use record::{write_json_string, write_record, write_record_members};
pub use room::{Held, Room};
pub use secrets::{Resealed, reseal};
pub use settings::EngineSettings;
pub use supervisor::{FleetStatus, KeptWorker, WorkerSettings};
