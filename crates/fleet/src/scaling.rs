//! The part of an endpoint's record that determines its fleet.

use longshore_model::{Endpoint, ScalerType};

/// The rule by which the fleet grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaler {
    /// One more worker for every `ms` that the oldest queued normal job has waited.
    QueueDelay {
        /// The wait in ms; 0 starts workers for all queued jobs immediately.
        ms: u64,
    },
    /// One worker for every `jobs` queued or running jobs.
    RequestCount {
        /// The number of jobs per worker; 0 counts as 1.
        jobs: u64,
    },
}

/// The part of an endpoint's record that determines its fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalingRules {
    /// The number of workers that are kept while no job is queued.
    pub workers_min: u32,
    /// The largest number of workers; 0 pauses the endpoint. Overrides `workers_min`.
    pub workers_max: u32,
    /// How long a worker may idle before it is drained, in ms.
    pub idle_timeout_ms: u64,
    /// The rule by which the fleet grows.
    pub scaler: Scaler,
    /// The number of concurrent jobs of one worker that the scaler assumes; 0 counts as 1.
    pub max_concurrency: u64,
    /// The present version: workers of any other version are replaced.
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
