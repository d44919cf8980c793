//! How long the supervisor waits for the first take of a worker.

use std::time::Duration;

use longshore_model::{Endpoint, WorkerId};
use tokio::time::Instant;

/// The longest wait for an adopted worker that was started with another base URL of this server, which it probably cannot
/// reach.
const MOVED_PATIENCE_MAX: Duration = Duration::from_mins(1);

/// The wait for the first take of a worker. The endpoint's setting at its begin counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartPatience {
    /// When the worker was started or adopted.
    since: Instant,
    /// How long the first take is waited for.
    duration: Duration,
    is_adopted: bool,
}

impl StartPatience {
    /// Begins the wait for a worker that is started now.
    pub(super) fn of_start(endpoint: &Endpoint) -> Self {
        let duration = Duration::from_millis(endpoint.start_patience_ms);
        Self { since: Instant::now(), duration, is_adopted: false }
    }

    /// Begins the wait for a worker that is adopted now. If the server has `moved`, it lasts at most 60 s.
    pub(super) fn of_adoption(endpoint: &Endpoint, moved: bool) -> Self {
        let patience = Self::of_start(endpoint);
        let duration = if moved { patience.duration.min(MOVED_PATIENCE_MAX) } else { patience.duration };
        Self { duration, is_adopted: true, ..patience }
    }

    /// Returns when the worker is late, after half of the wait. From then on other workers may be started in its place.
    pub(super) fn late_at(&self) -> Instant {
        self.since + self.duration / 2
    }

    /// Returns when the wait ends and the worker is replaced.
    pub(super) fn ends_at(&self) -> Instant {
        self.since + self.duration
    }

    /// Returns why the worker is replaced at the end of the wait.
    pub(super) fn reason(&self, worker: &WorkerId) -> String {
        let seconds = self.duration.as_secs_f64();
        let event = if self.is_adopted { "adoption" } else { "start" };
        format!("worker {worker} asked for no job within {seconds} s of its {event}")
    }
}
