//! An API key with its use: whether it was used since the last write, and from which addresses.
//!
//! Every request passes here, so a use writes no row and reads no clock: it sets a flag, and the fingerprint of the address
//! if it is another one. The task that writes the flags, about once a minute, supplies the time.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use longshore_model::{ApiKey, Millis, Submitter};

/// Limit of the addresses that are stored of a key; beyond it a new address replaces the oldest.
const ADDRESSES_MAX: usize = 64;
/// Length of the cache of recent addresses, which is read without a lock.
const FINGERPRINTS: usize = 8;

/// The address of a client, with its fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's IP address, after trusted proxies.
    pub address: IpAddr,
    /// A hash of the address, constant while the server runs and keyed, so that clients cannot find addresses that
    /// share one. Never 0, but for a stored address that was not used since the server started.
    fingerprint: u64,
}

impl ClientAddress {
    /// Returns the address with its fingerprint; a `fingerprint` of 0 becomes 1.
    pub fn new(address: IpAddr, fingerprint: u64) -> Self {
        Self { address, fingerprint: fingerprint.max(1) }
    }
}

/// An API key with its use. A change of the key makes a new value that shares the use; the old value stays valid for
/// requests that hold it.
#[derive(Debug)]
pub struct TrackedKey {
    key: ApiKey,
    submitter: Submitter,
    /// Shared with the values of earlier and later changes.
    usage: Arc<KeyUsage>,
}

/// The use of a key since the server started.
#[derive(Debug)]
struct KeyUsage {
    /// The key was used since the last [`TrackedKey::take_usage`].
    is_used: AtomicBool,
    /// When the use was last taken to be written; 0 if never.
    taken_at: AtomicU64,
    /// The fingerprint of the address of the last use; 0 if it is unknown.
    last_fingerprint: AtomicU64,
    /// The cache of known addresses: each fingerprint at its index modulo the length; 0 is empty.
    fingerprints: [AtomicU64; FINGERPRINTS],
    /// Known addresses, the most recently added last.
    addresses: Mutex<Vec<ClientAddress>>,
}

impl Deref for TrackedKey {
    type Target = ApiKey;

    fn deref(&self) -> &ApiKey {
        &self.key
    }
}

impl TrackedKey {
    /// Returns a stored key without use.
    pub(crate) fn new(key: ApiKey) -> Self {
        let stored = key.addresses.iter().map(|address| ClientAddress { address: *address, fingerprint: 0 });
        let usage = KeyUsage {
            is_used: AtomicBool::new(false),
            taken_at: AtomicU64::new(0),
            last_fingerprint: AtomicU64::new(0),
            fingerprints: Default::default(),
            addresses: Mutex::new(stored.collect()),
        };
        Self { submitter: key.submitter(), key, usage: Arc::new(usage) }
    }

    /// Returns the key after a change, with the use of this one.
    pub(crate) fn changed(&self, key: ApiKey) -> Self {
        Self { submitter: key.submitter(), key, usage: Arc::clone(&self.usage) }
    }

    /// Returns the key's id and owner, which the jobs that it submits carry.
    pub fn submitter(&self) -> Submitter {
        self.submitter
    }

    /// Records a use. Returns whether the use is the first one from this address; `false` without an address.
    pub fn touch(&self, client: Option<&ClientAddress>) -> bool {
        // Read before the write, so that the cache line stays shared between processors.
        if !self.usage.is_used.load(Ordering::Relaxed) {
            self.usage.is_used.store(true, Ordering::Relaxed);
        }
        let fingerprint = client.map_or(0, |client| client.fingerprint);
        if self.usage.last_fingerprint.load(Ordering::Relaxed) != fingerprint {
            self.usage.last_fingerprint.store(fingerprint, Ordering::Relaxed);
        }
        client.is_some_and(|client| self.usage.is_new(client))
    }

    /// Returns when the key was last used, to about a minute; `None` if never.
    pub fn last_used_at(&self, now: Millis) -> Option<Millis> {
        if self.usage.is_used.load(Ordering::Relaxed) {
            return Some(now);
        }
        let taken_at = Some(Millis(self.usage.taken_at.load(Ordering::Relaxed))).filter(|at| at.0 > 0);
        self.key.last_used_at.max(taken_at)
    }

    /// Returns the address of the last use; `None` if it is unknown, or if the key was never used.
    pub fn last_used_from(&self) -> Option<IpAddr> {
        let usage = &self.usage;
        if !usage.is_used.load(Ordering::Relaxed) && usage.taken_at.load(Ordering::Relaxed) == 0 {
            return self.key.last_used_from;
        }
        let last = usage.last_fingerprint.load(Ordering::Relaxed);
        let addresses = usage.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.iter().find(|known| known.fingerprint == last && last != 0).map(|known| known.address)
    }

    /// Returns the key to be written, with `now` as its last use, its address and all known addresses; `None` if the key was not
    /// used since the last call. Counts the use as written.
    pub(crate) fn take_usage(&self, now: Millis) -> Option<ApiKey> {
        if self.usage.is_used.load(Ordering::Relaxed) {
            self.usage.taken_at.store(now.0, Ordering::Relaxed);
        }
        let is_used = self.usage.is_used.swap(false, Ordering::Relaxed);
        is_used.then(|| ApiKey {
            last_used_at: Some(now),
            last_used_from: self.last_used_from(),
            addresses: self.usage.known(),
            ..self.key.clone()
        })
    }

    /// Counts the use as unwritten again, after a write that failed.
    pub(crate) fn put_usage_back(&self) {
        self.usage.is_used.store(true, Ordering::Relaxed);
    }
}

impl KeyUsage {
    /// Adds an address. Returns whether it was unknown.
    fn is_new(&self, client: &ClientAddress) -> bool {
        let cached = &self.fingerprints[(client.fingerprint % FINGERPRINTS as u64) as usize];
        if cached.load(Ordering::Relaxed) == client.fingerprint {
            return false;
        }
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        cached.store(client.fingerprint, Ordering::Relaxed);
        if let Some(known) = addresses.iter_mut().find(|known| known.address == client.address) {
            known.fingerprint = client.fingerprint;
            return false;
        }
        if addresses.len() == ADDRESSES_MAX {
            self.forget(addresses.remove(0).fingerprint);
        }
        addresses.push(*client);
        true
    }

    /// Removes an address that is no longer known from the cache.
    fn forget(&self, fingerprint: u64) {
        let cached = &self.fingerprints[(fingerprint % FINGERPRINTS as u64) as usize];
        if cached.load(Ordering::Relaxed) == fingerprint {
            cached.store(0, Ordering::Relaxed);
        }
    }

    fn known(&self) -> Vec<IpAddr> {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.iter().map(|known| known.address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TrackedKey {
        TrackedKey::new(ApiKey::new("k".into(), String::new(), String::new(), Vec::new(), Millis(1)))
    }

    fn client(number: u32) -> ClientAddress {
        ClientAddress { address: IpAddr::V4(number.into()), fingerprint: u64::from(number) + 1 }
    }

    #[test]
    fn a_use_is_written_once() {
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
    fn an_address_is_new_once_also_if_it_shares_its_place_in_the_cache() {
        let key = key();
        for number in 0..40 {
            assert!(key.touch(Some(&client(number))), "{number}");
        }
        for number in (0..40).chain(0..40) {
            assert!(!key.touch(Some(&client(number))), "{number}");
        }
        let record = key.take_usage(Millis(2)).unwrap();
        assert_eq!(record.addresses.len(), 40);
        // The stored addresses are known after a restart.
        assert!(!TrackedKey::new(record).touch(Some(&client(7))));
    }

    #[test]
    fn the_address_of_the_last_use_is_known_also_after_a_restart() {
        let key = key();
        assert_eq!(key.last_used_from(), None);
        for number in [1, 2, 1, 3, 2] {
            key.touch(Some(&client(number)));
            assert_eq!(key.last_used_from(), Some(client(number).address));
        }
        let record = key.take_usage(Millis(7)).unwrap();
        assert_eq!(
            (record.last_used_from, key.last_used_from()),
            (Some(client(2).address), Some(client(2).address))
        );
        let restarted = TrackedKey::new(record);
        assert_eq!(restarted.last_used_from(), Some(client(2).address));
        restarted.touch(Some(&client(1)));
        assert_eq!(restarted.last_used_from(), Some(client(1).address));
        // A client whose address is unknown was not at the address of the client before it.
        restarted.touch(None);
        assert_eq!(restarted.last_used_from(), None);
    }

    #[test]
    fn the_number_of_addresses_is_limited() {
        let key = key();
        for number in 0..1_000 {
            assert!(key.touch(Some(&client(number))));
        }
        let addresses = key.take_usage(Millis(2)).unwrap().addresses;
        assert_eq!(addresses.len(), ADDRESSES_MAX);
        assert_eq!(addresses.last(), Some(&client(999).address));
        assert!(key.touch(Some(&client(0))), "the oldest addresses were replaced");
        assert_eq!(key.last_used_from(), Some(client(0).address));
    }
}
