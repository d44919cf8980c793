//! The state that every handler gets, and the settings that it is made from.

use std::sync::Arc;
use std::time::Duration;

use longshore_engine::{Engine, Histogram};
use longshore_history::History;
use longshore_model::limits::TAKE_HOLD_MS_MAX;
use longshore_model::{Endpoint, Millis, StreamShape};

use crate::AuditLog;
use crate::events::hub::EventHub;
use crate::events::reader_counts::ReaderPlaces;
use crate::gate::rate_limits::RateLimiter;
use crate::gate::session_rates::SessionRates;
use crate::metrics::page::PageCaches;
use crate::metrics::requests::RequestCounts;
use crate::services::burns::BurnCache;
use crate::services::files::NoFiles;
use crate::services::open_connections::OpenConnections;
use crate::sessions::failed_sign_ins::FailedSignIns;
use crate::wire::body::BodyBudget;
use crate::{ConsoleSettings, FileService, NodeStatus, Prices, RateLimits, ScrubReport, ServerFacts};

/// The operator's settings of this crate.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The rate limits of clients.
    pub rate_limits: RateLimits,
    /// Most bytes of request bodies in memory; above it the status is 503. The engine's settings bound the bytes of
    /// responses.
    pub bytes_in_flight_max: usize,
    /// How long a take waits for a job, in ms; at most 25 000.
    pub worker_hold_ms: u64,
    /// The server's address for external workers. `None`: the address that the request for their token was sent to.
    pub workers_url: Option<String>,
    /// The domain below which the first label of a host names a load-balancing endpoint, in lower case, such as
    /// `apps.example.org`. `None`: paths alone name one.
    pub lb_domain: Option<String>,
    /// The audit log. `None`: changes are not logged.
    pub audit: Option<AuditLog>,
    /// The prices of workers, for billing.
    pub prices: Prices,
    /// Whether `/metrics` needs no key.
    pub metrics_public: bool,
    /// The results of the background scrub of stored files. `None`: files are not scrubbed.
    pub scrub: Option<Arc<ScrubReport>>,
    /// The times of the database's flushes, in us. `None`: rows are in no database.
    pub flush_us: Option<Arc<Histogram>>,
    /// The history of endpoints. `None`: there is none.
    pub history: Option<Arc<History>>,
    /// What polls of streams return if the endpoint sets nothing.
    pub stream_shape: StreamShape,
    /// Whether there is a console, and its addresses.
    pub console: ConsoleSettings,
    /// What only the program knows of the server.
    pub facts: ServerFacts,
    /// This server among those of its database, of which it owns the shards; `None` for a server without peers.
    pub node: Option<Arc<NodeStatus>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            rate_limits: RateLimits::default(),
            bytes_in_flight_max: 512_000_000,
            worker_hold_ms: 20_000,
            workers_url: None,
            lb_domain: None,
            audit: None,
            prices: Prices::default(),
            metrics_public: false,
            scrub: None,
            flush_us: None,
            history: None,
            stream_shape: StreamShape::default(),
            console: ConsoleSettings::default(),
            facts: ServerFacts::default(),
            node: None,
        }
    }
}

/// The state that every handler gets. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct HttpState {
    shared: Arc<StateInner>,
}

struct StateInner {
    engine: Engine,
    started_at: Millis,
    limiter: RateLimiter,
    budget: BodyBudget,
    worker_hold: Duration,
    workers_url: Option<String>,
    lb_domain: Option<String>,
    audit: Option<AuditLog>,
    requests: RequestCounts,
    metrics_public: bool,
    metrics_pages: PageCaches,
    prices: Prices,
    scrub: Option<Arc<ScrubReport>>,
    flush_us: Option<Arc<Histogram>>,
    history: Option<Arc<History>>,
    stream_shape: StreamShape,
    console: ConsoleSettings,
    installation: String,
    session_rates: Arc<SessionRates>,
    failed_sign_ins: FailedSignIns,
    events: Arc<EventHub>,
    log_readers: ReaderPlaces,
    burns: BurnCache,
    files: Arc<dyn FileService>,
    facts: ServerFacts,
    connections: OpenConnections,
    node: Option<Arc<NodeStatus>>,
}

impl HttpState {
    /// The state of a server without files.
    pub fn new(engine: Engine, settings: &HttpSettings) -> Self {
        Self::with_files(engine, settings, Arc::new(NoFiles))
    }

    /// The state of a server with files.
    pub fn with_files(engine: Engine, settings: &HttpSettings, files: Arc<dyn FileService>) -> Self {
        let limiter = RateLimiter::new(&settings.rate_limits);
        let budget = BodyBudget::new(settings.bytes_in_flight_max);
        // The oldest workers with a timeout give up after 30 s; a job that is sent later is lost.
        let worker_hold = Duration::from_millis(settings.worker_hold_ms.min(TAKE_HOLD_MS_MAX));
        let requests = RequestCounts::default();
        let prices = settings.prices.clone();
        let installation = engine.fingerprint(b"installation");
        let events = Arc::new(EventHub::new(engine.now().0));
        let shared = StateInner {
            started_at: engine.now(),
            engine,
            limiter,
            budget,
            worker_hold,
            workers_url: settings.workers_url.clone(),
            lb_domain: settings.lb_domain.clone(),
            audit: settings.audit.clone(),
            requests,
            metrics_public: settings.metrics_public,
            metrics_pages: PageCaches::default(),
            prices,
            scrub: settings.scrub.clone(),
            flush_us: settings.flush_us.clone(),
            history: settings.history.clone(),
            stream_shape: settings.stream_shape,
            console: settings.console.clone(),
            installation,
            session_rates: Arc::default(),
            failed_sign_ins: FailedSignIns::default(),
            events,
            log_readers: ReaderPlaces::default(),
            burns: BurnCache::default(),
            files,
            facts: settings.facts.clone(),
            connections: OpenConnections::default(),
            node: settings.node.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// What polls of the endpoint's streams return.
    pub(crate) fn stream_shape_of(&self, endpoint: &Endpoint) -> StreamShape {
        endpoint.stream_shape.unwrap_or(self.shared.stream_shape)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// When the server began to serve requests.
    pub(crate) fn started_at(&self) -> Millis {
        self.shared.started_at
    }

    pub(crate) fn limiter(&self) -> &RateLimiter {
        &self.shared.limiter
    }

    pub(crate) fn budget(&self) -> &BodyBudget {
        &self.shared.budget
    }

    pub(crate) fn worker_hold(&self) -> Duration {
        self.shared.worker_hold
    }

    pub(crate) fn prices(&self) -> &Prices {
        &self.shared.prices
    }

    pub(crate) fn flush_us(&self) -> Option<&Histogram> {
        self.shared.flush_us.as_deref()
    }

    pub(crate) fn scrub(&self) -> Option<&ScrubReport> {
        self.shared.scrub.as_deref()
    }

    /// The history of endpoints, if there is one.
    pub(crate) fn history(&self) -> Option<&Arc<History>> {
        self.shared.history.as_ref()
    }

    pub(crate) fn files(&self) -> &Arc<dyn FileService> {
        &self.shared.files
    }

    /// The operator's settings of the console.
    pub(crate) fn console(&self) -> &ConsoleSettings {
        &self.shared.console
    }

    /// Hexadecimal digits that tell this installation from others.
    pub(crate) fn installation(&self) -> &str {
        &self.shared.installation
    }

    pub(crate) fn session_rates(&self) -> &Arc<SessionRates> {
        &self.shared.session_rates
    }

    /// What changes, for readers of events.
    pub(crate) fn events(&self) -> &Arc<EventHub> {
        &self.shared.events
    }

    /// The places of the clients that follow logs of endpoints.
    pub(crate) fn log_readers(&self) -> &ReaderPlaces {
        &self.shared.log_readers
    }

    /// The budgets of objectives that burn.
    pub(crate) fn burns(&self) -> &BurnCache {
        &self.shared.burns
    }

    pub(crate) fn failed_sign_ins(&self) -> &FailedSignIns {
        &self.shared.failed_sign_ins
    }

    /// The audit log; `None` if changes are not logged.
    pub(crate) fn audit(&self) -> Option<&AuditLog> {
        self.shared.audit.as_ref()
    }

    /// The server's address for external workers, if it is set.
    pub(crate) fn workers_url(&self) -> Option<&str> {
        self.shared.workers_url.as_deref()
    }

    /// The domain below which hosts name load-balancing endpoints, if it is set.
    pub(crate) fn lb_domain(&self) -> Option<&str> {
        self.shared.lb_domain.as_deref()
    }

    /// Whether `/metrics` needs no key.
    pub(crate) fn metrics_public(&self) -> bool {
        self.shared.metrics_public
    }

    pub(crate) fn metrics_pages(&self) -> &PageCaches {
        &self.shared.metrics_pages
    }

    /// What only the program knows of the server.
    pub(crate) fn facts(&self) -> &ServerFacts {
        &self.shared.facts
    }

    /// This server among those of its database; `None` for a server without peers.
    pub(crate) fn node(&self) -> Option<&NodeStatus> {
        self.shared.node.as_deref()
    }

    /// The open connections of all listeners.
    pub(crate) fn connections(&self) -> &OpenConnections {
        &self.shared.connections
    }

    pub(crate) fn requests(&self) -> &RequestCounts {
        &self.shared.requests
    }
}
