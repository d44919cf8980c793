//! The part of an endpoint's record that determines its fleet.

use longshore_model::{Endpoint, ScalerType};

use crate::IdleGaps;

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

impl Scaler {
    /// The rule of an endpoint with these two fields.
    pub fn of(scaler_type: ScalerType, scaler_value: u32) -> Self {
        let value = u64::from(scaler_value);
        match scaler_type {
            ScalerType::QueueDelay | ScalerType::IdleGaps => Self::QueueDelay { ms: value * 1_000 },
            ScalerType::RequestCount => Self::RequestCount { jobs: value },
        }
    }
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
    /// The largest `idle_timeout_ms` that [`ScalingRules::after`] may choose; `None`: `idle_timeout_ms` is fixed.
    pub idle_timeout_ms_max: Option<u64>,
    /// The rule by which the fleet grows.
    pub scaler: Scaler,
    /// The number of concurrent jobs of one worker that the scaler assumes; 0 counts as 1.
    pub max_concurrency: u64,
    /// The present version: workers of any other version are replaced.
    pub version: u32,
    /// Whether the workers serve requests that are forwarded to them. Outstanding requests then start workers too, and a
    /// worker of an older version serves until its replacement is up, as far as `workers_max` permits.
    pub is_balanced: bool,
}

impl From<&Endpoint> for ScalingRules {
    fn from(endpoint: &Endpoint) -> Self {
        Self {
            workers_min: endpoint.workers_min,
            workers_max: endpoint.workers_max,
            idle_timeout_ms: u64::from(endpoint.idle_timeout_s) * 1_000,
            idle_timeout_ms_max: (endpoint.scaler_type == ScalerType::IdleGaps)
                .then(|| u64::from(endpoint.idle_timeout_max_s) * 1_000),
            scaler: Scaler::of(endpoint.scaler_type, endpoint.scaler_value),
            max_concurrency: match endpoint.balances() {
                None => u64::from(endpoint.max_concurrency),
                // One worker serves any number of requests.
                Some(lb) if lb.max_concurrency == 0 => u64::MAX,
                Some(lb) => u64::from(lb.max_concurrency),
            },
            version: endpoint.version,
            is_balanced: endpoint.balances().is_some(),
        }
    }
}

impl ScalingRules {
    /// The rules with the idle timeout that the gaps between the endpoint's jobs suggest; the same rules if it is fixed.
    #[must_use]
    pub fn after(self, gaps: &IdleGaps) -> Self {
        let chosen = self.idle_timeout_ms_max.map(|max_ms| gaps.keep_ms(self.idle_timeout_ms, max_ms));
        Self { idle_timeout_ms: chosen.unwrap_or(self.idle_timeout_ms), ..self }
    }
}
