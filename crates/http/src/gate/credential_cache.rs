//! The last credential of a connection, and the key or worker that it belongs to.
//!
//! A client sends the same credential with each of its requests. Hashing and finding a key costs 3 000 instructions of a
//! submit; checking a worker token costs 6 000 of a take. The cache saves that for all but the first request of a
//! connection. A cached key is checked for changes each time.

use std::sync::Arc;

use longshore_engine::TrackedKey;
use longshore_model::EndpointId;

use crate::gate::peer;

/// Longer credentials are not cached; no key and no worker token is longer.
const CREDENTIAL_BYTES_MAX: usize = 256;

/// The last credential of one connection, at most [`CREDENTIAL_BYTES_MAX`] bytes.
#[derive(Default)]
pub(crate) struct CredentialCache {
    credential: Vec<u8>,
    found: CachedCredential,
}

/// What a credential belongs to.
#[derive(Default)]
enum CachedCredential {
    #[default]
    Nothing,
    Key(Arc<TrackedKey>),
    WorkerOf(EndpointId),
}

impl CredentialCache {
    fn is(&self, credential: &[u8]) -> bool {
        let differ = |(one, other): (&u8, &u8)| one ^ other;
        // A proxy can share the connection between clients: the time of the comparison must not reveal how much is
        // equal.
        self.credential.len() == credential.len()
            && self.credential.iter().zip(credential).map(differ).fold(0, |all, bits| all | bits) == 0
    }

    fn keep(&mut self, credential: &[u8], found: CachedCredential) {
        if credential.len() > CREDENTIAL_BYTES_MAX {
            return;
        }
        self.credential.clear();
        self.credential.extend_from_slice(credential);
        self.found = found;
    }
}

/// The key of this credential; `None` if the credential is not cached or the key has changed since.
pub(crate) fn known_key(credential: &[u8]) -> Option<Arc<TrackedKey>> {
    peer::credential_cache(|cache| match &cache.found {
        CachedCredential::Key(key) if key.is_current() && cache.is(credential) => Some(Arc::clone(key)),
        _ => None,
    })?
}

/// Caches this credential as that of `key`.
pub(crate) fn keep_key(credential: &[u8], key: &Arc<TrackedKey>) {
    peer::credential_cache(|cache| cache.keep(credential, CachedCredential::Key(Arc::clone(key))));
}

/// Whether this credential is cached as the worker token of `endpoint`.
pub(crate) fn is_known_worker(credential: &[u8], endpoint: &EndpointId) -> bool {
    let knows = |cache: &mut CredentialCache| match &cache.found {
        CachedCredential::WorkerOf(known) => known == endpoint && cache.is(credential),
        _ => false,
    };
    peer::credential_cache(knows).unwrap_or(false)
}

/// Caches this credential as the worker token of `endpoint`.
pub(crate) fn keep_worker(credential: &[u8], endpoint: EndpointId) {
    peer::credential_cache(|cache| cache.keep(credential, CachedCredential::WorkerOf(endpoint)));
}
