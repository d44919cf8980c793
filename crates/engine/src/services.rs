//! The services that all endpoints of an engine share.

use std::sync::Arc;

use longshore_blobs::Blobs;
use longshore_model::Endpoint;
use longshore_queue::QueueSettings;
use longshore_store::Store;
use longshore_vault::Keyring;

use crate::drain::Drain;
use crate::failures::FailureInbox;
use crate::job_feed::FeedSwitch;
use crate::owner_use::OwnerUse;
use crate::payload_budget::PayloadBudget;
use crate::payload_cache::PayloadCache;
use crate::read_faults::ReadFaults;
use crate::runtime::{Clock, Runtime};
use crate::space::Shortage;
use crate::store_health::StoreHealth;
use crate::traces::Traces;
use crate::webhooks::WebhookHandle;
use crate::webhooks::log::watched::WatchedLog;
use crate::{EngineMetrics, EngineSettings, Jobs};

/// The services that all endpoints of an engine share. One per engine.
pub(crate) struct Services {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// The engine's time, made of the runtime's two clocks.
    pub(crate) clock: Clock,
    pub(crate) settings: EngineSettings,
    /// The keys that encrypt secrets.
    pub(crate) vault: Arc<Keyring>,
    /// Inputs and outcomes that were written lately, so that few of them are read from the store.
    pub(crate) payload_cache: PayloadCache,
    /// Memory for payloads that are in flight to clients and webhook receivers.
    pub(crate) answers: PayloadBudget,
    /// Memory for inputs that are in flight to workers. Separate from `answers`, so that clients that read slowly delay no
    /// worker.
    pub(crate) inputs: PayloadBudget,
    /// The request budget: memory for requests and payloads that were received and are not durable yet.
    pub(crate) requests: PayloadBudget,
    /// Limits the log lines about payloads that cannot be read.
    pub(crate) read_faults: ReadFaults,
    pub(crate) metrics: Arc<EngineMetrics>,
    /// Whether the store can write.
    pub(crate) store_health: Arc<StoreHealth>,
    /// Whether anyone reads the changes of jobs.
    pub(crate) feeds: FeedSwitch,
    /// The failed jobs that the history has not got.
    pub(crate) failures: FailureInbox,
    /// Whether the server drains.
    pub(crate) drain: Drain,
    /// Whether the disk has too little space for new jobs.
    pub(crate) space: Shortage,
    /// What each owner of keys used since the start.
    pub(crate) owner_use: OwnerUse,
    /// Sends the webhook calls of all endpoints.
    pub(crate) webhooks: WebhookHandle<Jobs>,
    pub(crate) webhook_log: Arc<WatchedLog>,
    /// Traces of jobs; `None` without a collector.
    pub(crate) traces: Option<Arc<Traces>>,
}

impl Services {
    /// Returns whether no queue hands out jobs: the server drains, or the disk has too little space.
    pub(crate) fn holds_jobs(&self) -> bool {
        self.drain.since().is_some() || self.space.is_set()
    }

    /// Returns the present settings of an endpoint's queue, which is paused while no queue hands out jobs.
    pub(crate) fn queue_settings(&self, endpoint: &Endpoint) -> QueueSettings {
        let settings = self.settings.of_queue(endpoint);
        QueueSettings { paused: settings.paused || self.holds_jobs(), ..settings }
    }
}
