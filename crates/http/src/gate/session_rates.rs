//! The rate limit of sessions, apart from those of keys: a person's pages send many small requests concurrently.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::gate::rate_limits::LimitExceeded;
use crate::gate::sliding_window::{SlidingWindow, WindowDecision};

/// Requests of one session in any 10 s.
const PER_10_S: u32 = 400;
/// Requests of one session that have no response yet.
const CONCURRENT: u32 = 16;
/// Sessions without an open request, at which idle ones are forgotten. There are at most 1 000 sessions.
const SWEEP_AT: usize = 2_000;
/// The name of the limit in errors and headers.
const NAME: &str = "console";

/// Counts the requests of sessions.
pub(crate) struct SessionRates {
    started: Instant,
    usages: Mutex<HashMap<String, Usage>>,
}

#[derive(Default)]
struct Usage {
    window: SlidingWindow,
    open: u32,
}

impl Default for SessionRates {
    fn default() -> Self {
        Self { started: Instant::now(), usages: Mutex::default() }
    }
}

impl SessionRates {
    /// Counts a request of the session with this id. The request is open until the permit is dropped.
    ///
    /// # Errors
    ///
    /// [`LimitExceeded`] if the session is over a limit; the request is not counted.
    pub(super) fn admit(self: &Arc<Self>, session: &str) -> Result<SessionPermit, LimitExceeded> {
        let now_ms = self.started.elapsed().as_millis() as u64;
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        if usages.len() >= SWEEP_AT {
            usages.retain(|_, usage| usage.open > 0 || !usage.window.is_idle(now_ms));
        }
        let usage = usages.entry(session.to_owned()).or_default();
        if usage.open >= CONCURRENT {
            return Err(LimitExceeded::of_concurrency(NAME, PER_10_S));
        }
        match usage.window.admit(now_ms, PER_10_S) {
            WindowDecision::Refused { wait_ms } => Err(LimitExceeded::of_rate(NAME, PER_10_S, wait_ms)),
            WindowDecision::Admitted { .. } => {
                usage.open += 1;
                Ok(SessionPermit { rates: Arc::clone(self), session: session.to_owned() })
            }
        }
    }
}

/// A request of a session that has no response yet.
pub(crate) struct SessionPermit {
    rates: Arc<SessionRates>,
    session: String,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut usages = self.rates.usages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(usage) = usages.get_mut(&self.session) {
            usage.open = usage.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_session_has_its_rate_and_its_concurrency() {
        let rates = Arc::new(SessionRates::default());
        let open: Vec<_> = (0..CONCURRENT).map(|_| rates.admit("a").ok().unwrap()).collect();
        assert!(rates.admit("a").is_err());
        assert!(rates.admit("b").is_ok());
        drop(open);
        for _ in CONCURRENT..PER_10_S {
            assert!(rates.admit("a").is_ok());
        }
        assert!(rates.admit("a").is_err());
        tokio::time::advance(std::time::Duration::from_secs(10)).await;
        assert!(rates.admit("a").is_ok());
    }
}
