//! The part of an endpoint's record that its fleet goes by.

use longshore_model::{Endpoint, ScalerType};

/// What makes the fleet grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaler {
    /// One more worker for every so many milliseconds that the oldest normal job has waited.
    QueueDelay {
        /// The span; 0 means that waiting jobs are covered at once.
        ms: u64,
    },
    /// One worker for every so many jobs that wait or run.
    RequestCount {
        /// Jobs per worker; 0 counts as 1.
        jobs: u64,
    },
}

/// The part of an endpoint's record that its fleet goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalingRules {
    /// Workers kept even when there is nothing to do.
    pub workers_min: u32,
    /// The most workers; 0 pauses the endpoint. Wins over `workers_min`.
    pub workers_max: u32,
    /// How long a worker may idle before it is stopped.
    pub idle_timeout_ms: u64,
    /// What makes the fleet grow.
    pub scaler: Scaler,
    /// Jobs at once on one worker that the scaler counts on; 0 counts as 1.
    pub max_concurrency: u64,
    /// Workers of any other version are replaced.
    pub version: u32,
}

impl From<&Endpoint> for ScalingRules {
    fn from(endpoint: &Endpoint) -> Self {
        let value = u64::from(endpoint.scaler_value);
        Self {
            workers_min: endpoint.workers_min,
            workers_max: endpoint.workers_max,
            idle_timeout_ms: u64::from(endpoint.idle_timeout_s) * 1_000,
            scaler: match endpoint.scaler_type {
                ScalerType::QueueDelay => Scaler::QueueDelay { ms: value * 1_000 },
                ScalerType::RequestCount => Scaler::RequestCount { jobs: value },
            },
            max_concurrency: u64::from(endpoint.max_concurrency),
            version: endpoint.version,
        }
    }
}
