//! Room for calls, per host and in bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shares the room between the hosts, so that one of them cannot take all of it.
#[derive(Clone)]
pub(super) struct Lanes {
    shared: Arc<Shared>,
}

struct Shared {
    calls_per_host_max: usize,
    bytes_max: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    bytes: usize,
    hosts: HashMap<Arc<str>, HostUse>,
}

#[derive(Clone, Copy, Default)]
struct HostUse {
    calls: usize,
    bytes: usize,
}

/// Room for one call, given back when it is dropped.
pub(super) struct Slot {
    lanes: Lanes,
    host: Arc<str>,
    bytes: usize,
}

/// Why there is no room now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crowded {
    /// The host has its share; room comes when one of its own calls ends.
    Host,
    /// All hosts together have too many bytes in flight; room comes when any call ends.
    Bytes,
}

impl Lanes {
    pub fn new(calls_per_host_max: usize, bytes_max: usize) -> Self {
        let shared =
            Shared { calls_per_host_max: calls_per_host_max.max(1), bytes_max, used: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Room for a call of `bytes` to `host`. A quarter of the bytes is the most for one host; a single body may
    /// always go, however large.
    pub fn enter(&self, host: &Arc<str>, bytes: usize) -> Result<Slot, Crowded> {
        let mut used = self.used();
        let of_host = used.hosts.get(host).copied().unwrap_or_default();
        let fits = |used: usize, max: usize| used == 0 || used + bytes <= max;
        if of_host.calls >= self.shared.calls_per_host_max || !fits(of_host.bytes, self.shared.bytes_max / 4)
        {
            return Err(Crowded::Host);
        }
        if !fits(used.bytes, self.shared.bytes_max) {
            return Err(Crowded::Bytes);
        }
        used.bytes += bytes;
        let entry = used.hosts.entry(host.clone()).or_default();
        *entry = HostUse { calls: entry.calls + 1, bytes: entry.bytes + bytes };
        Ok(Slot { lanes: self.clone(), host: host.clone(), bytes })
    }

    /// Whether a call to the host is being made.
    pub fn is_busy(&self, host: &str) -> bool {
        self.used().hosts.contains_key(host)
    }

    /// Whether any call is being made.
    pub fn is_idle(&self) -> bool {
        self.used().hosts.is_empty()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        // The sums are changed in one step each; a panic elsewhere cannot leave them half done.
        self.shared.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The host of the call.
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut used = self.lanes.used();
        used.bytes -= self.bytes;
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
        let lanes = Lanes::new(2, 1000);
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let first = lanes.enter(&a, 10).ok();
        let second = lanes.enter(&a, 10).ok();
        assert!(first.is_some() && second.is_some());
        assert_eq!(lanes.enter(&a, 10).err(), Some(Crowded::Host));
        assert!(lanes.enter(&b, 10).is_ok());
        drop(first);
        assert!(lanes.enter(&a, 10).is_ok());
    }

    #[test]
    fn bytes_are_bounded_for_a_host_and_for_all() {
        let lanes = Lanes::new(9, 1000);
        let hosts: Vec<Arc<str>> = ["a", "b", "c", "d", "e"].map(Arc::from).into();
        let slots: Vec<_> = hosts.iter().take(4).map(|host| lanes.enter(host, 250).ok()).collect();
        assert!(slots.iter().all(Option::is_some));
        assert_eq!(lanes.enter(&hosts[0], 1).err(), Some(Crowded::Host));
        assert_eq!(lanes.enter(&hosts[4], 1).err(), Some(Crowded::Bytes));
        drop(slots);
        assert!(lanes.is_idle() && !lanes.is_busy("a"));
    }

    #[test]
    fn a_body_over_every_limit_goes_alone() {
        let lanes = Lanes::new(9, 1000);
        let huge = lanes.enter(&Arc::from("a"), 5000).ok();
        assert!(huge.is_some());
        assert_eq!(lanes.enter(&Arc::from("b"), 1).err(), Some(Crowded::Bytes));
    }
}
