//! The limit of failed sign-ins: by address, so that no client can lock others out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a failure counts.
const WINDOW: Duration = Duration::from_mins(1);
/// Failures of one address in the window, above which it is refused.
const PER_ADDRESS: usize = 10;
/// Failures of all addresses in the window, above which each address has one.
const ALL_CALM: usize = 100;
/// Most failures that are remembered; above it the oldest is forgotten.
const REMEMBERED_MAX: usize = 10_000;

/// Counts failed sign-ins of the last minute.
#[derive(Default)]
pub(crate) struct FailedSignIns {
    recent: Mutex<Recent>,
}

#[derive(Default)]
struct Recent {
    failures: VecDeque<(Instant, IpAddr)>,
    /// Failures and attempts in flight.
    by_address: HashMap<IpAddr, usize>,
}

/// A sign-in whose outcome is not yet known. It counts as a failure until it is dropped, so that concurrent ones are
/// limited, too.
pub(crate) struct Attempt<'a> {
    failed: &'a FailedSignIns,
    address: IpAddr,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.failed.recent.lock().unwrap_or_else(PoisonError::into_inner).count_off(self.address);
    }
}

impl FailedSignIns {
    /// Whether another sign-in from this address may be tried now; else the seconds until it may.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), u64> {
        self.check_at(Instant::now(), address)
    }

    /// Begins a sign-in; else the seconds until one may be tried.
    pub(crate) fn begin(&self, address: IpAddr) -> Result<Attempt<'_>, u64> {
        self.begin_at(Instant::now(), address)
    }

    /// Counts a failure. Returns whether few enough failed for this one to be in the audit log.
    pub(crate) fn note(&self, address: IpAddr) -> bool {
        self.note_at(Instant::now(), address)
    }

    fn check_at(&self, now: Instant, address: IpAddr) -> Result<(), u64> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).check(now, network(address))
    }

    fn begin_at(&self, now: Instant, address: IpAddr) -> Result<Attempt<'_>, u64> {
        let address = network(address);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.check(now, address)?;
        *recent.by_address.entry(address).or_default() += 1;
        Ok(Attempt { failed: self, address })
    }

    fn note_at(&self, now: Instant, address: IpAddr) -> bool {
        let address = network(address);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.forget(now);
        if recent.failures.len() == REMEMBERED_MAX {
            recent.forget_oldest();
        }
        recent.failures.push_back((now, address));
        *recent.by_address.entry(address).or_default() += 1;
        recent.failures.len() <= ALL_CALM
    }
}

impl Recent {
    /// See [`FailedSignIns::check`].
    fn check(&mut self, now: Instant, address: IpAddr) -> Result<(), u64> {
        self.forget(now);
        let most = if self.failures.len() < ALL_CALM { PER_ADDRESS } else { 1 };
        if self.by_address.get(&address).copied().unwrap_or(0) < most {
            return Ok(());
        }
        let of_address = self.failures.iter().filter(|(_, of)| *of == address);
        let oldest = of_address.map(|(at, _)| *at).next().unwrap_or(now);
        Err((oldest + WINDOW - now).as_secs() + 1)
    }

    fn forget(&mut self, now: Instant) {
        while self.failures.front().is_some_and(|(at, _)| *at + WINDOW <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, address)) = self.failures.pop_front() else { return };
        self.count_off(address);
    }

    fn count_off(&mut self, address: IpAddr) {
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

/// What counts as one address: a client of IPv6 usually has a network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(n).into()
    }

    #[test]
    fn ten_failures_in_a_minute_and_then_a_wait() {
        let failed = FailedSignIns::default();
        let start = Instant::now();
        for _ in 0..PER_ADDRESS {
            assert_eq!(failed.check_at(start, address(1)), Ok(()));
            assert!(failed.note_at(start, address(1)));
        }
        assert_eq!(failed.check_at(start + Duration::from_secs(20), address(1)), Err(41));
        assert_eq!(failed.check_at(start, address(2)), Ok(()), "others are not locked out");
        assert_eq!(failed.check_at(start + WINDOW, address(1)), Ok(()));
    }

    #[test]
    fn attempts_in_flight_count_until_they_end() {
        let failed = FailedSignIns::default();
        let start = Instant::now();
        let attempts: Vec<_> =
            (0..PER_ADDRESS).map(|_| failed.begin_at(start, address(1)).unwrap()).collect();
        assert_eq!(failed.begin_at(start, address(1)).err(), Some(61));
        assert!(failed.begin_at(start, address(2)).is_ok());
        drop(attempts);
        assert!(failed.begin_at(start, address(1)).is_ok());
        assert!(failed.recent.lock().unwrap().by_address.is_empty());
    }

    #[test]
    fn when_many_fail_each_address_has_one() {
        let failed = FailedSignIns::default();
        let start = Instant::now();
        for n in 0..ALL_CALM as u32 {
            assert!(failed.note_at(start, address(n)));
        }
        assert!(failed.check_at(start, address(5)).is_err());
        assert_eq!(failed.check_at(start, address(5_000)), Ok(()));
        assert!(!failed.note_at(start, address(5_000)), "no more entries in the audit log");
        assert!(failed.check_at(start, address(5_000)).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let failed = FailedSignIns::default();
        let start = Instant::now();
        for n in 0..REMEMBERED_MAX as u32 + 50 {
            failed.note_at(start, address(n));
        }
        let recent = failed.recent.lock().unwrap();
        assert_eq!((recent.failures.len(), recent.by_address.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    }

    #[test]
    fn neighbours_of_ipv6_are_one_address() {
        let failed = FailedSignIns::default();
        for host in 0..PER_ADDRESS {
            failed.note(format!("2001:db8:0:1::{host}").parse().unwrap());
        }
        assert!(failed.check("2001:db8:0:1:ffff::1".parse().unwrap()).is_err());
        assert_eq!(failed.check("2001:db8:0:2::1".parse().unwrap()), Ok(()));
    }
}
