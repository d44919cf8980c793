//! A broken invariant of the queue or its actor: the panic voids the round, and the queue is reloaded from rows after a wait.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::time::Instant;

use super::Actor;

#[cfg(test)]
mod tests;

/// The wait before the reload after a first broken invariant.
const RELOAD_WAIT_MIN: Duration = Duration::from_millis(500);
/// The longest wait before a reload.
const RELOAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// The time after a reload without a broken invariant after which the wait is [`RELOAD_WAIT_MIN`] again.
const SOUND_TIME_MIN: Duration = Duration::from_mins(1);

/// The wait before a reload after a broken invariant, which doubles each time: a fault that is in the rows returns with
/// every reload. Volatile; one per actor.
#[derive(Debug, Default)]
pub(super) struct ReloadBackoff {
    /// Broken invariants without [`SOUND_TIME_MIN`] between them.
    faults: u32,
    /// The time of the reload after the last broken invariant; `None` if there was none.
    reload_at: Option<Instant>,
}

impl ReloadBackoff {
    /// Counts a broken invariant, and returns the wait before the reload.
    fn count(&mut self, now: Instant) -> Duration {
        if self.reload_at.is_some_and(|reload_at| now.saturating_duration_since(reload_at) >= SOUND_TIME_MIN)
        {
            self.faults = 0;
        }
        let wait = RELOAD_WAIT_MIN.saturating_mul(1 << self.faults.min(16)).min(RELOAD_WAIT_MAX);
        self.faults += 1;
        self.reload_at = Some(now + wait);
        wait
    }

    /// The time of the reload after the last broken invariant; now if there was none.
    pub(super) fn reload_at(&self) -> Instant {
        self.reload_at.unwrap_or_else(Instant::now)
    }
}

impl Actor {
    /// Runs `handle` as one round and flushes it. A panic means that an invariant is broken, so that the queue and the
    /// round's results may be wrong. `is_broken` is then set: the round is void, and the caller has to reload the queue.
    pub(super) fn run_round(&mut self, handle: impl FnOnce(&mut Self)) {
        self.post_commit.is_watched = self.shared.services.feeds.is_on();
        self.catch_broken(|actor| {
            handle(actor);
            actor.queue.check_sample();
            actor.flush();
        });
    }

    /// Runs `step`, and sets `is_broken` if it panics.
    pub(super) fn catch_broken(&mut self, step: impl FnOnce(&mut Self)) {
        // Unwind safe: after a panic the queue and the round are read by no handler before the reload replaces them.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| step(self))) {
            self.is_broken = true;
            self.shared.services.metrics.invariant_broken();
            let invariant = message(panic.as_ref());
            let retry_ms = self.reload_backoff.count(Instant::now()).as_millis() as u64;
            tracing::error!(endpoint = %self.shared.id, invariant, retry_ms, "invariant broken, reloading queue");
        }
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
