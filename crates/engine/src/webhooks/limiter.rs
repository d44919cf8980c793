//! Limits concurrent webhook calls: their number per receiver, and the bytes of their bodies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::breaker::{Breaker, BreakerSettings, BreakerState};

/// Circuit breakers in memory from which on [`Breaker::is_evictable`] ones are dropped at the next failure.
const BREAKERS_MAX: usize = 10_000;

/// Shares the permits between the receivers, so that one of them cannot hold all. A receiver is a host and a port.
/// Clones share the state.
#[derive(Clone)]
pub(super) struct CallLimiter {
    shared: Arc<LimiterShared>,
}

struct LimiterShared {
    calls_per_host_max: usize,
    bytes_max: usize,
    breaker: BreakerSettings,
    state: Mutex<LimiterState>,
}

#[derive(Default)]
struct LimiterState {
    /// Bytes of all bodies being sent.
    bytes: usize,
    /// The receivers with calls in flight.
    hosts: HashMap<Arc<str>, HostUse>,
    /// The breakers of the receivers whose last call had no response.
    breakers: HashMap<Arc<str>, Breaker>,
}

/// The calls in flight to one receiver and the bytes of their bodies.
#[derive(Clone, Copy, Default)]
struct HostUse {
    calls: usize,
    bytes: usize,
}

/// The permission to make one call, returned when it is dropped.
pub(super) struct CallPermit {
    limiter: CallLimiter,
    host: Arc<str>,
    bytes: usize,
    /// The call's response or failure is recorded in the breaker.
    is_recorded: bool,
}

/// Why a call may not be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPermit {
    /// The receiver has its share of calls or bytes; the end of one of its calls lets the next go.
    Host,
    /// All receivers together have too many bytes in flight; the end of any call frees some.
    Bytes,
    /// The circuit breaker of the receiver is open until this time.
    CircuitOpen(Instant),
}

impl CallLimiter {
    /// Returns a limiter of at least one call per receiver and of `bytes_max` bytes in all.
    pub fn new(calls_per_host_max: usize, bytes_max: usize, breaker: BreakerSettings) -> Self {
        let calls_per_host_max = calls_per_host_max.max(1);
        let shared = LimiterShared { calls_per_host_max, bytes_max, breaker, state: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the permit for a call to `host` with a body of `bytes` bytes.
    ///
    /// One receiver gets at most a quarter of all bytes. A body over a limit is permitted while no other one is being
    /// sent.
    ///
    /// # Errors
    ///
    /// Each variant of [`NoPermit`]; nothing changed.
    pub fn try_acquire(&self, host: &Arc<str>, bytes: usize) -> Result<CallPermit, NoPermit> {
        let mut state = self.lock();
        match state.breakers.get(host).map_or(BreakerState::Closed, |breaker| breaker.state(Instant::now())) {
            BreakerState::Closed => {}
            BreakerState::Probing => return Err(NoPermit::Host),
            BreakerState::OpenUntil(until) => return Err(NoPermit::CircuitOpen(until)),
        }
        let of_host = state.hosts.get(host).copied().unwrap_or_default();
        let fits = |used: usize, max: usize| used == 0 || used + bytes <= max;
        if of_host.calls >= self.shared.calls_per_host_max || !fits(of_host.bytes, self.shared.bytes_max / 4)
        {
            return Err(NoPermit::Host);
        }
        if !fits(state.bytes, self.shared.bytes_max) {
            return Err(NoPermit::Bytes);
        }
        state.bytes += bytes;
        let entry = state.hosts.entry(host.clone()).or_default();
        *entry = HostUse { calls: entry.calls + 1, bytes: entry.bytes + bytes };
        if let Some(breaker) = state.breakers.get_mut(host) {
            breaker.begin();
        }
        Ok(CallPermit { limiter: self.clone(), host: host.clone(), bytes, is_recorded: false })
    }

    /// Returns whether a call to the receiver is in flight.
    pub fn is_busy(&self, host: &str) -> bool {
        self.lock().hosts.contains_key(host)
    }

    /// Returns until when the circuit breaker of the receiver is open; `None` if it is closed or half-open.
    pub fn open_until(&self, host: &str) -> Option<Instant> {
        match self.lock().breakers.get(host)?.state(Instant::now()) {
            BreakerState::OpenUntil(until) => Some(until),
            BreakerState::Closed | BreakerState::Probing => None,
        }
    }

    /// The receivers with an open circuit breaker: host and port, since when, and when its pause ends. Sorted by name.
    pub fn open_breakers(&self) -> Vec<(Arc<str>, Instant, Instant)> {
        let state = self.lock();
        let open = state.breakers.iter().filter_map(|(host, breaker)| {
            let (since, until) = breaker.open()?;
            Some((host.clone(), since, until))
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        open
    }

    /// Limit of concurrent calls to one receiver, at least 1.
    pub fn calls_per_host_max(&self) -> usize {
        self.shared.calls_per_host_max
    }

    /// Returns whether no call is in flight.
    pub fn is_idle(&self) -> bool {
        self.lock().hosts.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        // No code between two changes that belong together can panic, so a poisoned state is still consistent.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPermit {
    /// The receiver of the call: host and port.
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// Records a response of any status. Returns whether the response closed the receiver's circuit breaker.
    pub fn record_response(&mut self) -> bool {
        self.is_recorded = true;
        let breaker = self.limiter.lock().breakers.remove(&self.host);
        breaker.is_some_and(|mut breaker| breaker.record_response())
    }

    /// Records that there was no response.
    pub fn record_failure(&mut self) {
        self.is_recorded = true;
        let now = Instant::now();
        let mut state = self.limiter.lock();
        if state.breakers.len() >= BREAKERS_MAX {
            state.breakers.retain(|_, breaker| !breaker.is_evictable(now));
        }
        state
            .breakers
            .entry(self.host.clone())
            .or_default()
            .record_failure(now, &self.limiter.shared.breaker);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut state = self.limiter.lock();
        state.bytes -= self.bytes;
        if !self.is_recorded
            && let Some(breaker) = state.breakers.get_mut(&self.host)
        {
            breaker.abandon();
        }
        let Some(host) = state.hosts.get_mut(&self.host) else { return };
        host.calls -= 1;
        host.bytes -= self.bytes;
        if host.calls == 0 {
            state.hosts.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_at_its_limit_leaves_the_others_their_calls() {
        let limiter = CallLimiter::new(2, 1000, BreakerSettings::default());
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let first = limiter.try_acquire(&a, 10).ok();
        let second = limiter.try_acquire(&a, 10).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(limiter.try_acquire(&a, 10).err(), Some(NoPermit::Host));
        assert!(limiter.try_acquire(&b, 10).is_ok());
        drop(first);
        assert!(limiter.try_acquire(&a, 10).is_ok());
    }

    #[test]
    fn bytes_are_limited_per_receiver_and_in_all() {
        let limiter = CallLimiter::new(9, 1000, BreakerSettings::default());
        let hosts: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).into();
        let permits: Vec<_> = hosts.iter().take(4).map(|host| limiter.try_acquire(host, 250).ok()).collect();
        assert!(permits.iter().all(Option::is_some));
        assert_eq!(limiter.try_acquire(&hosts[0], 1).err(), Some(NoPermit::Host));
        assert_eq!(limiter.try_acquire(&hosts[4], 1).err(), Some(NoPermit::Bytes));
        drop(permits);
        assert!(limiter.is_idle() && !limiter.is_busy("a"));
    }

    #[test]
    fn a_body_over_every_limit_is_sent_alone() {
        let limiter = CallLimiter::new(9, 1000, BreakerSettings::default());
        let huge = limiter.try_acquire(&Arc::from("a"), 5000).ok();
        assert!(huge.is_some());
        assert_eq!(limiter.try_acquire(&Arc::from("b"), 1).err(), Some(NoPermit::Bytes));
    }

    #[test]
    fn the_breaker_opens_for_a_receiver_without_responses_and_for_no_other() {
        let breaker = BreakerSettings { failures_max: 2, ..BreakerSettings::default() };
        let limiter = CallLimiter::new(9, 1000, breaker);
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let acquire = |host: &Arc<str>| match limiter.try_acquire(host, 1) {
            Ok(permit) => permit,
            Err(reason) => panic!("no permit: {reason:?}"),
        };
        for _ in 0..2 {
            acquire(&a).record_failure();
        }
        assert!(
            matches!(limiter.try_acquire(&a, 1).err(), Some(NoPermit::CircuitOpen(until)) if until > Instant::now())
        );
        assert!(limiter.open_until("a").is_some() && limiter.open_until("b").is_none());
        assert!(!acquire(&b).record_response());
    }
}
