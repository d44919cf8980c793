//! The measurements of an endpoint's forwarded requests.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use longshore_fleet::WorkerHealth;
use tokio::time::Instant;

use super::rate::Rate;
use crate::Histogram;

/// Bounds of the histograms, in ms.
const MS: &[u64] =
    &[1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000];

/// How a request ended, for its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalancerOutcome {
    /// The worker answered with this status.
    Answered(StatusCode),
    /// The server answered in place of a worker, for the reason of its `X-Longshore-Error`.
    Refused,
}

/// The measurements of an endpoint's forwarded requests since the server started.
#[derive(Debug)]
pub struct BalancerMetrics {
    /// Answered requests by the first digit of their status, from 1 to 5.
    answered: [AtomicU64; 5],
    refused: AtomicU64,
    rate: Rate,
    retries: AtomicU64,
    became_healthy: AtomicU64,
    became_unhealthy: AtomicU64,
    /// How long requests that had to wait waited for a worker, in ms.
    pub queue_wait_ms: Histogram,
    /// The time from the choice of a worker to the head of its response, in ms.
    pub first_byte_ms: Histogram,
    /// The time from the choice of a worker to the end of its response, in ms.
    pub duration_ms: Histogram,
}

impl Default for BalancerMetrics {
    fn default() -> Self {
        Self {
            answered: Default::default(),
            refused: AtomicU64::default(),
            rate: Rate::default(),
            retries: AtomicU64::default(),
            became_healthy: AtomicU64::default(),
            became_unhealthy: AtomicU64::default(),
            queue_wait_ms: Histogram::new(MS),
            first_byte_ms: Histogram::new(MS),
            duration_ms: Histogram::new(MS),
        }
    }
}

impl BalancerMetrics {
    /// Counts the end of a request at `now`.
    pub fn count(&self, outcome: BalancerOutcome, now: Instant) {
        let counter = match outcome {
            BalancerOutcome::Refused => &self.refused,
            BalancerOutcome::Answered(status) => {
                let class = usize::from(status.as_u16() / 100).clamp(1, 5);
                &self.answered[class - 1]
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.rate.count(now.into_std());
    }

    /// The requests of a second, answered or refused: the average of the last 10 s.
    pub fn per_second(&self) -> f64 {
        self.rate.per_second()
    }

    /// Counts a request that was sent to another worker, or over another connection.
    pub fn retried(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn health_changed(&self, health: WorkerHealth) {
        let counter =
            if health == WorkerHealth::Healthy { &self.became_healthy } else { &self.became_unhealthy };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers of requests by what was answered: `1xx` to `5xx`, and `refused`.
    pub fn requests(&self) -> [(&'static str, u64); 6] {
        let of = |class: usize| self.answered[class].load(Ordering::Relaxed);
        [
            ("1xx", of(0)),
            ("2xx", of(1)),
            ("3xx", of(2)),
            ("4xx", of(3)),
            ("5xx", of(4)),
            ("refused", self.refused.load(Ordering::Relaxed)),
        ]
    }

    /// The number of requests that were sent again, because the first worker or connection could not be reached.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How often a worker became healthy, and how often one ceased to be.
    pub fn health_changes(&self) -> (u64, u64) {
        (self.became_healthy.load(Ordering::Relaxed), self.became_unhealthy.load(Ordering::Relaxed))
    }
}
