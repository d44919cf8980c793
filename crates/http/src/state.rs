//! What every handler can reach.

use std::sync::Arc;

use longshore_engine::Engine;
use serde::Deserialize;

use crate::RateLimits;
use crate::body::BytesBudget;
use crate::rate_limits::RateLimiter;

/// What the operator can set about this crate.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSettings {
    /// How often callers may ask.
    pub rate_limits: RateLimits,
    /// The most bytes of request bodies in memory at once; over it requests are answered 503.
    pub bytes_in_flight_max: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { rate_limits: RateLimits::default(), bytes_in_flight_max: 512_000_000 }
    }
}

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct HttpState {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    limiter: RateLimiter,
    budget: BytesBudget,
}

impl HttpState {
    /// The state of one server.
    pub fn new(engine: Engine, settings: &HttpSettings) -> Self {
        let limiter = RateLimiter::new(&settings.rate_limits);
        let budget = BytesBudget::new(settings.bytes_in_flight_max);
        Self { shared: Arc::new(Shared { engine, limiter, budget }) }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    pub(crate) fn limiter(&self) -> &RateLimiter {
        &self.shared.limiter
    }

    pub(crate) fn budget(&self) -> &BytesBudget {
        &self.shared.budget
    }
}
