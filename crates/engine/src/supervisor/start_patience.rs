//! How long the supervisor waits for the first take of a worker.

use std::time::Duration;

use longshore_model::{Endpoint, WorkerId};
use tokio::time::Instant;

/// The longest wait for an adopted worker that was started with another base URL of this server, which it probably cannot
/// reach.
const MOVED_PATIENCE_MAX: Duration = Duration::from_mins(1);

/// The wait for the first take of a worker. The endpoint's setting at the begin of the start counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartPatience {
    /// When the worker was started or adopted; `None` while the launcher still prepares it, for example pulls its image.
    since: Option<Instant>,
    /// How long the first take is waited for.
    duration: Duration,
    is_adopted: bool,
}

impl StartPatience {
    /// The wait for a worker whose start begins now. [`StartPatience::begin`] begins it.
    pub(super) fn of_start(endpoint: &Endpoint) -> Self {
        Self { since: None, duration: Duration::from_millis(endpoint.start_patience_ms), is_adopted: false }
    }

    /// Begins the wait for a worker that is adopted now. If the server has `moved`, it lasts at most 60 s.
    pub(super) fn of_adoption(endpoint: &Endpoint, moved: bool) -> Self {
        let Self { duration, .. } = Self::of_start(endpoint);
        let duration = if moved { duration.min(MOVED_PATIENCE_MAX) } else { duration };
        Self { since: Some(Instant::now()), duration, is_adopted: true }
    }

    /// Begins the wait, if it has not begun: the worker runs, or is about to.
    pub(super) fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Returns whether an earlier server started the worker.
    pub(super) fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Returns when the worker is late, after half of the wait; `None` before the wait has begun. From then on other workers
    /// may be started in its place.
    pub(super) fn late_at(&self) -> Option<Instant> {
        self.since.map(|since| since + self.duration / 2)
    }

    /// Returns when the wait ends and the worker is replaced; `None` before the wait has begun.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.since.map(|since| since + self.duration)
    }

    /// Returns how long the first take is waited for, in ms.
    pub(super) fn duration_ms(&self) -> u64 {
        self.duration.as_millis() as u64
    }

    /// Returns whether the worker was adopted, so that the begin of its start is not the begin of the wait.
    pub(super) fn is_of_adoption(&self) -> bool {
        self.is_adopted
    }

    /// Returns why the worker is replaced at the end of the wait. `last_check` is the result of the last health check of a
    /// worker that serves HTTP.
    pub(super) fn reason(&self, worker: &WorkerId, last_check: Option<&str>) -> String {
        let seconds = self.duration.as_secs_f64();
        let event = if self.is_adopted { "adoption" } else { "start" };
        if let Some(last_check) = last_check {
            return format!(
                "worker {worker} was not healthy within {seconds} s of its {event}; its last check: {last_check}"
            );
        }
        format!("worker {worker} asked for no job within {seconds} s of its {event}")
    }
}
