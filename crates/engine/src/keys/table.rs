//! Keys and owners in memory.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_model::ApiKey;

use super::owners::Owners;
use crate::tracked_key::TrackedKey;

/// The keys in memory, and their owners. What it has is durable.
#[derive(Default)]
pub(super) struct KeyTable {
    /// Keys, oldest first.
    keys: Vec<Arc<TrackedKey>>,
    by_hash: HashMap<String, Arc<TrackedKey>>,
    pub(super) owners: Owners,
}

impl KeyTable {
    /// Every key, oldest first.
    pub(super) fn keys(&self) -> &[Arc<TrackedKey>] {
        &self.keys
    }

    /// The key whose text has this hash.
    pub(super) fn by_hash(&self, hash: &str) -> Option<&Arc<TrackedKey>> {
        self.by_hash.get(hash)
    }

    /// The key with this id.
    pub(super) fn get(&self, id: &str) -> Option<&Arc<TrackedKey>> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// Inserts a key, or replaces the record of the one with its id in its place.
    pub(super) fn put(&mut self, record: ApiKey) -> Arc<TrackedKey> {
        let place = self.keys.iter().position(|key| key.id == record.id);
        let key = Arc::new(match place {
            Some(place) => self.keys[place].changed(record),
            None => TrackedKey::new(record),
        });
        // The replaced record can have another hash.
        self.by_hash.retain(|_, other| other.id != key.id);
        self.by_hash.insert(key.hash.clone(), Arc::clone(&key));
        match place {
            Some(place) => self.keys[place] = Arc::clone(&key),
            None => self.keys.push(Arc::clone(&key)),
        }
        key
    }

    /// Removes the key with this id, if there is one.
    pub(super) fn remove(&mut self, id: &str) {
        self.keys.retain(|key| key.id != id);
        self.by_hash.retain(|_, key| key.id != id);
    }
}
