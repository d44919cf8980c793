//! A key in use: its record, and what was seen of it since that was last written down.
//!
//! Every request passes here, so nothing is written and no clock is read: a use leaves a mark, and whoever writes the
//! marks down, about once a minute, says when that was.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use longshore_model::{ApiKey, Millis, Submitter};

/// The most addresses that are remembered of a key; the oldest is forgotten for a new one.
const ADDRESSES_MAX: usize = 64;
/// How many of them are known at a glance.
const FINGERPRINTS: usize = 8;

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The address.
    pub address: IpAddr,
    /// A number that stands for it, the same as long as this program runs; nobody outside can tell which addresses
    /// share one. Never 0.
    fingerprint: u64,
}

impl ClientAddress {
    /// A request from `address`, with the number that stands for it.
    pub fn new(address: IpAddr, fingerprint: u64) -> Self {
        Self { address, fingerprint: fingerprint.max(1) }
    }
}

/// See the module.
#[derive(Debug)]
pub struct TrackedKey {
    record: ApiKey,
    submitter: Submitter,
    /// There is another record of it by now, or none.
    is_past: AtomicBool,
    /// Outlives changes of the record.
    usage: Arc<KeyUsage>,
}

/// What was seen of a key.
#[derive(Debug)]
struct KeyUsage {
    used: AtomicBool,
    /// When the mark was last taken: until the record says so, this does. 0 if never.
    taken_at: AtomicU64,
    /// Fingerprints of addresses that are known, each in the place that it names.
    fingerprints: [AtomicU64; FINGERPRINTS],
    addresses: Mutex<Vec<IpAddr>>,
}

impl Deref for TrackedKey {
    type Target = ApiKey;

    fn deref(&self) -> &ApiKey {
        &self.record
    }
}

impl TrackedKey {
    /// A key as it was stored.
    pub(crate) fn new(record: ApiKey) -> Self {
        let usage = KeyUsage {
            used: AtomicBool::new(false),
            taken_at: AtomicU64::new(0),
            fingerprints: Default::default(),
            addresses: Mutex::new(record.addresses.clone()),
        };
        Self {
            submitter: record.submitter(),
            record,
            is_past: AtomicBool::new(false),
            usage: Arc::new(usage),
        }
    }

    /// The same key after its record changed.
    pub(crate) fn changed(&self, record: ApiKey) -> Self {
        let (is_past, usage) = (AtomicBool::new(false), Arc::clone(&self.usage));
        Self { submitter: record.submitter(), record, is_past, usage }
    }

    /// What the jobs carry that it submits.
    pub fn submitter(&self) -> Submitter {
        self.submitter
    }

    /// Whether a look-up of the key's hash would find this: for those who keep it.
    pub fn is_current(&self) -> bool {
        !self.is_past.load(Ordering::Acquire)
    }

    /// No look-up finds this any more.
    pub(crate) fn retire(&self) {
        self.is_past.store(true, Ordering::Release);
    }

    /// Notes that the key is used. Whether it comes from this address for the first time.
    pub fn touch(&self, client: Option<&ClientAddress>) -> bool {
        // Read before it is written, so that the processors need not hand the mark to each other.
        if !self.usage.used.load(Ordering::Relaxed) {
            self.usage.used.store(true, Ordering::Relaxed);
        }
        client.is_some_and(|client| self.usage.is_new(client))
    }

    /// When the key was last used, to the minute.
    pub fn last_used_at(&self, now: Millis) -> Option<Millis> {
        if self.usage.used.load(Ordering::Relaxed) {
            return Some(now);
        }
        let taken_at = Some(Millis(self.usage.taken_at.load(Ordering::Relaxed))).filter(|at| at.0 > 0);
        self.record.last_used_at.max(taken_at)
    }

    /// The record with what was seen since the last time, if anything was.
    pub(crate) fn take_usage(&self, now: Millis) -> Option<ApiKey> {
        if self.usage.used.load(Ordering::Relaxed) {
            self.usage.taken_at.store(now.0, Ordering::Relaxed);
        }
        let used = self.usage.used.swap(false, Ordering::Relaxed);
        used.then(|| ApiKey {
            last_used_at: Some(now),
            addresses: self.usage.addresses.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..self.record.clone()
        })
    }

    /// What was taken could not be kept: it is for the next time.
    pub(crate) fn put_usage_back(&self) {
        self.usage.used.store(true, Ordering::Relaxed);
    }
}

impl KeyUsage {
    fn is_new(&self, client: &ClientAddress) -> bool {
        let glance = &self.fingerprints[(client.fingerprint % FINGERPRINTS as u64) as usize];
        if glance.load(Ordering::Relaxed) == client.fingerprint {
            return false;
        }
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        glance.store(client.fingerprint, Ordering::Relaxed);
        if addresses.contains(&client.address) {
            return false;
        }
        if addresses.len() == ADDRESSES_MAX {
            addresses.remove(0);
        }
        addresses.push(client.address);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TrackedKey {
        TrackedKey::new(ApiKey::new("k".into(), String::new(), String::new(), Vec::new(), Millis(1)))
    }

    fn caller(number: u32) -> ClientAddress {
        ClientAddress { address: IpAddr::V4(number.into()), fingerprint: u64::from(number) + 1 }
    }

    #[test]
    fn a_use_is_written_down_once() {
        let key = key();
        assert_eq!((key.take_usage(Millis(5)), key.last_used_at(Millis(5))), (None, None));
        key.touch(None);
        assert_eq!(key.last_used_at(Millis(6)), Some(Millis(6)));
        let record = key.take_usage(Millis(7)).unwrap();
        assert_eq!((record.last_used_at, key.last_used_at(Millis(8))), (Some(Millis(7)), Some(Millis(7))));
        assert_eq!(key.take_usage(Millis(8)), None);
        assert_eq!(key.changed(record).last_used_at(Millis(9)), Some(Millis(7)));
        key.put_usage_back();
        assert_eq!(key.take_usage(Millis(9)).unwrap().last_used_at, Some(Millis(9)));
    }

    #[test]
    fn an_address_is_new_once_whatever_shares_its_glance() {
        let key = key();
        for number in 0..40 {
            assert!(key.touch(Some(&caller(number))), "{number}");
        }
        for number in (0..40).chain(0..40) {
            assert!(!key.touch(Some(&caller(number))), "{number}");
        }
        let record = key.take_usage(Millis(2)).unwrap();
        assert_eq!(record.addresses.len(), 40);
        // Known from the record, too: after a restart nobody is new again.
        assert!(!TrackedKey::new(record).touch(Some(&caller(7))));
    }

    #[test]
    fn there_is_room_for_so_many_addresses() {
        let key = key();
        for number in 0..1_000 {
            assert!(key.touch(Some(&caller(number))));
        }
        let addresses = key.take_usage(Millis(2)).unwrap().addresses;
        assert_eq!(addresses.len(), ADDRESSES_MAX);
        assert_eq!(addresses.last(), Some(&caller(999).address));
        assert!(key.touch(Some(&caller(0))), "it was forgotten long ago");
    }
}
