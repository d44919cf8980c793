//! Room for calls, per receiver and in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::breaker::{Breaker, BreakerSettings, BreakerState};

/// Receivers of which something is remembered; over it, what is worth least is forgotten.
const BREAKERS_MAX: usize = 10_000;

/// Shares the room between the receivers, so that one of them cannot take all of it. A receiver is a host and a port.
#[derive(Clone)]
pub(super) struct CallLimiter {
    shared: Arc<LimiterShared>,
}

struct LimiterShared {
    calls_per_host_max: usize,
    bytes_max: usize,
    breaker: BreakerSettings,
    used: Mutex<LimiterState>,
}

#[derive(Default)]
struct LimiterState {
    bytes: usize,
    hosts: HashMap<Arc<str>, HostUse>,
    /// Of the receivers whose last call was not answered.
    breakers: HashMap<Arc<str>, Breaker>,
}

#[derive(Clone, Copy, Default)]
struct HostUse {
    calls: usize,
    bytes: usize,
}

/// Room for one call, given back when it is dropped.
pub(super) struct CallPermit {
    limiter: CallLimiter,
    host: Arc<str>,
    bytes: usize,
    is_decided: bool,
}

/// Why there is no room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPermit {
    /// The host has its share; room comes when one of its own calls ends.
    Host,
    /// All hosts together have too many bytes in flight; room comes when any call ends.
    Bytes,
    /// The host does not answer; it is left in peace until then.
    CircuitOpen(Instant),
}

impl CallLimiter {
    pub fn new(calls_per_host_max: usize, bytes_max: usize, breaker: BreakerSettings) -> Self {
        let calls_per_host_max = calls_per_host_max.max(1);
        let shared = LimiterShared { calls_per_host_max, bytes_max, breaker, used: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Room for a call of `bytes` to `host`. A quarter of the bytes is the most for one host; a single body may
    /// always go, however large.
    pub fn enter(&self, host: &Arc<str>, bytes: usize) -> Result<CallPermit, NoPermit> {
        let mut used = self.used();
        match used.breakers.get(host).map_or(BreakerState::Closed, |breaker| breaker.admit(Instant::now())) {
            BreakerState::Closed => {}
            BreakerState::Probing => return Err(NoPermit::Host),
            BreakerState::OpenUntil(until) => return Err(NoPermit::CircuitOpen(until)),
        }
        let of_host = used.hosts.get(host).copied().unwrap_or_default();
        let fits = |used: usize, max: usize| used == 0 || used + bytes <= max;
        if of_host.calls >= self.shared.calls_per_host_max || !fits(of_host.bytes, self.shared.bytes_max / 4)
        {
            return Err(NoPermit::Host);
        }
        if !fits(used.bytes, self.shared.bytes_max) {
            return Err(NoPermit::Bytes);
        }
        used.bytes += bytes;
        let entry = used.hosts.entry(host.clone()).or_default();
        *entry = HostUse { calls: entry.calls + 1, bytes: entry.bytes + bytes };
        if let Some(breaker) = used.breakers.get_mut(host) {
            breaker.begin();
        }
        Ok(CallPermit { limiter: self.clone(), host: host.clone(), bytes, is_decided: false })
    }

    /// Whether a call to the host is being made.
    pub fn is_busy(&self, host: &str) -> bool {
        self.used().hosts.contains_key(host)
    }

    /// Until when the host is left in peace.
    pub fn open_until(&self, host: &str) -> Option<Instant> {
        match self.used().breakers.get(host)?.admit(Instant::now()) {
            BreakerState::OpenUntil(until) => Some(until),
            BreakerState::Closed | BreakerState::Probing => None,
        }
    }

    /// Calls being made at a time to one host.
    pub fn calls_per_host_max(&self) -> usize {
        self.shared.calls_per_host_max
    }

    /// Whether any call is being made.
    pub fn is_idle(&self) -> bool {
        self.used().hosts.is_empty()
    }

    fn used(&self) -> MutexGuard<'_, LimiterState> {
        // The sums are changed in one step each; a panic elsewhere cannot leave them half done.
        self.shared.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPermit {
    /// The host of the call.
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    /// The host answered, whatever it was. Says whether it had been left in peace before.
    pub fn answered(&mut self) -> bool {
        self.is_decided = true;
        self.limiter.used().breakers.remove(&self.host).is_some_and(|mut breaker| breaker.answered())
    }

    /// The host did not answer.
    pub fn record_failure(&mut self) {
        self.is_decided = true;
        let now = Instant::now();
        let mut used = self.limiter.used();
        if used.breakers.len() >= BREAKERS_MAX {
            used.breakers.retain(|_, breaker| !breaker.is_forgettable(now));
        }
        used.breakers.entry(self.host.clone()).or_default().record_failure(now, &self.limiter.shared.breaker);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut used = self.limiter.used();
        used.bytes -= self.bytes;
        if !self.is_decided
            && let Some(breaker) = used.breakers.get_mut(&self.host)
        {
            breaker.abandon();
        }
        let Some(host) = used.hosts.get_mut(&self.host) else { return };
        host.calls -= 1;
        host.bytes -= self.bytes;
        if host.calls == 0 {
            used.hosts.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_gets_its_share_and_leaves_the_others_theirs() {
        let limiter = CallLimiter::new(2, 1000, BreakerSettings::default());
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let first = limiter.enter(&a, 10).ok();
        let second = limiter.enter(&a, 10).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(limiter.enter(&a, 10).err(), Some(NoPermit::Host));
        assert!(limiter.enter(&b, 10).is_ok());
        drop(first);
        assert!(limiter.enter(&a, 10).is_ok());
    }

    #[test]
    fn bytes_are_bounded_for_a_host_and_for_all() {
        let limiter = CallLimiter::new(9, 1000, BreakerSettings::default());
        let hosts: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).into();
        let slots: Vec<_> = hosts.iter().take(4).map(|host| limiter.enter(host, 250).ok()).collect();
        assert!(slots.iter().all(Option::is_some));
        assert_eq!(limiter.enter(&hosts[0], 1).err(), Some(NoPermit::Host));
        assert_eq!(limiter.enter(&hosts[4], 1).err(), Some(NoPermit::Bytes));
        drop(slots);
        assert!(limiter.is_idle() && !limiter.is_busy("a"));
    }

    #[test]
    fn a_body_over_every_limit_goes_alone() {
        let limiter = CallLimiter::new(9, 1000, BreakerSettings::default());
        let huge = limiter.enter(&Arc::from("a"), 5000).ok();
        assert!(huge.is_some());
        assert_eq!(limiter.enter(&Arc::from("b"), 1).err(), Some(NoPermit::Bytes));
    }

    #[test]
    fn a_host_that_does_not_answer_is_left_in_peace_and_no_other() {
        let breaker = BreakerSettings { failures_max: 2, ..BreakerSettings::default() };
        let limiter = CallLimiter::new(9, 1000, breaker);
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let enter = |host: &Arc<str>| match limiter.enter(host, 1) {
            Ok(slot) => slot,
            Err(crowded) => panic!("there is room: {crowded:?}"),
        };
        for _ in 0..2 {
            enter(&a).record_failure();
        }
        assert!(
            matches!(limiter.enter(&a, 1).err(), Some(NoPermit::CircuitOpen(until)) if until > Instant::now())
        );
        assert!(limiter.open_until("a").is_some() && limiter.open_until("b").is_none());
        assert!(!enter(&b).answered());
    }
}
