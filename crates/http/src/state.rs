//! What every handler can reach.

use std::sync::Arc;
use std::time::Duration;

use longshore_engine::Engine;
use longshore_model::limits::TAKE_HOLD_MS_MAX;
use longshore_model::{Endpoint, StreamShape};

use crate::AuditLog;
use crate::gate::rate_limits::RateLimiter;
use crate::metrics::page::PageCache;
use crate::metrics::requests::RequestCounts;
use crate::services::files::NoFiles;
use crate::wire::body::BodyBudget;
use crate::{FileService, Prices, RateLimits, ScrubReport};

/// What the operator can set about this crate.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// How often callers may ask.
    pub rate_limits: RateLimits,
    /// The most bytes of request bodies in memory at once; over it requests are answered 503. What is read for answers
    /// is bounded by the engine's settings.
    pub bytes_in_flight_max: usize,
    /// How long a worker's question for jobs is held open while there is nothing; at most 25 000 ms.
    pub worker_hold_ms: u64,
    /// Where workers from outside are told to find the server; none: where the request for their token came to.
    pub workers_url: Option<String>,
    /// Where changes are written down; none: nowhere.
    pub audit: Option<AuditLog>,
    /// What workers cost.
    pub prices: Prices,
    /// Whether `/metrics` needs no key.
    pub metrics_public: bool,
    /// What is known of stored files that are read in the background; none: they are not.
    pub scrub: Option<Arc<ScrubReport>>,
    /// What polls of streams are answered where the endpoint does not say.
    pub stream_shape: StreamShape,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            rate_limits: RateLimits::default(),
            bytes_in_flight_max: 512_000_000,
            worker_hold_ms: 20_000,
            workers_url: None,
            audit: None,
            prices: Prices::default(),
            metrics_public: false,
            scrub: None,
            stream_shape: StreamShape::default(),
        }
    }
}

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct HttpState {
    shared: Arc<StateInner>,
}

struct StateInner {
    engine: Engine,
    limiter: RateLimiter,
    budget: BodyBudget,
    worker_hold: Duration,
    workers_url: Option<String>,
    audit: Option<AuditLog>,
    requests: RequestCounts,
    metrics_public: bool,
    metrics_page: Arc<PageCache>,
    prices: Prices,
    scrub: Option<Arc<ScrubReport>>,
    stream_shape: StreamShape,
    files: Arc<dyn FileService>,
}

impl HttpState {
    /// The state of one server.
    pub fn new(engine: Engine, settings: &HttpSettings) -> Self {
        Self::with_files(engine, settings, Arc::new(NoFiles))
    }

    /// The state of one server that keeps files.
    pub fn with_files(engine: Engine, settings: &HttpSettings, files: Arc<dyn FileService>) -> Self {
        let limiter = RateLimiter::new(&settings.rate_limits);
        let budget = BodyBudget::new(settings.bytes_in_flight_max);
        // The oldest workers with a limit give up after 30 s; a job answered after that is lost.
        let worker_hold = Duration::from_millis(settings.worker_hold_ms.min(TAKE_HOLD_MS_MAX));
        let requests = RequestCounts::default();
        let prices = settings.prices.clone();
        let shared = StateInner {
            engine,
            limiter,
            budget,
            worker_hold,
            workers_url: settings.workers_url.clone(),
            audit: settings.audit.clone(),
            requests,
            metrics_public: settings.metrics_public,
            metrics_page: Arc::default(),
            prices,
            scrub: settings.scrub.clone(),
            stream_shape: settings.stream_shape,
            files,
        };
        Self { shared: Arc::new(shared) }
    }

    /// What a poll of one of the endpoint's streams is answered.
    pub(crate) fn stream_shape_of(&self, endpoint: &Endpoint) -> StreamShape {
        endpoint.stream_shape.unwrap_or(self.shared.stream_shape)
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
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

    pub(crate) fn scrub(&self) -> Option<&ScrubReport> {
        self.shared.scrub.as_deref()
    }

    pub(crate) fn files(&self) -> &Arc<dyn FileService> {
        &self.shared.files
    }

    /// Where changes are written down.
    pub(crate) fn audit(&self) -> Option<&AuditLog> {
        self.shared.audit.as_ref()
    }

    /// Where workers from outside are told to find the server, if that was said.
    pub(crate) fn workers_url(&self) -> Option<&str> {
        self.shared.workers_url.as_deref()
    }

    /// Whether `/metrics` needs no key.
    pub(crate) fn metrics_public(&self) -> bool {
        self.shared.metrics_public
    }

    pub(crate) fn metrics_page(&self) -> &Arc<PageCache> {
        &self.shared.metrics_page
    }

    pub(crate) fn requests(&self) -> &RequestCounts {
        &self.shared.requests
    }
}
