//! The measurements of an endpoint's forwarded requests.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use longshore_fleet::WorkerHealth;
use longshore_history::ForwardedActivity;
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
    /// What the history has of them, too.
    activity: ForwardedActivity,
    rate: Rate,
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
            activity: ForwardedActivity::default(),
            rate: Rate::default(),
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
        match outcome {
            BalancerOutcome::Refused => self.activity.refused(),
            BalancerOutcome::Answered(status) => self.activity.answered(status.as_u16() / 100),
        }
        self.rate.count(now.into_std());
    }

    /// The requests of a second, answered or refused: the average of the last 10 s.
    pub fn per_second(&self) -> f64 {
        self.rate.per_second()
    }

    /// Counts a request that was sent to another worker, or over another connection.
    pub fn retried(&self) {
        self.activity.sent_again();
    }

    /// Counts the time from the choice of a worker to the head of its response.
    pub fn first_byte(&self, ms: u64) {
        self.activity.first_byte(ms);
        self.first_byte_ms.record(ms);
    }

    /// What is counted for the history.
    pub(crate) fn activity(&self) -> &ForwardedActivity {
        &self.activity
    }

    pub(super) fn health_changed(&self, health: WorkerHealth) {
        let counter =
            if health == WorkerHealth::Healthy { &self.became_healthy } else { &self.became_unhealthy };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The numbers of requests by what was answered: `1xx` to `5xx`, and `refused`.
    pub fn requests(&self) -> [(&'static str, u64); 6] {
        let [informational, successful, redirected, wrong, failed] = self.activity.answers();
        [
            ("1xx", informational),
            ("2xx", successful),
            ("3xx", redirected),
            ("4xx", wrong),
            ("5xx", failed),
            ("refused", self.activity.refusals()),
        ]
    }

    /// The number of requests that were sent again, because the first worker or connection could not be reached.
    pub fn retries(&self) -> u64 {
        self.activity.repeats()
    }

    /// How often a worker became healthy, and how often one ceased to be.
    pub fn health_changes(&self) -> (u64, u64) {
        (self.became_healthy.load(Ordering::Relaxed), self.became_unhealthy.load(Ordering::Relaxed))
    }
}
