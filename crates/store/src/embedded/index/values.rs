//! The values of the catalog, as they are on disk.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::place::Place;

/// A value and where its record is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<V> {
    /// The value.
    pub value: V,
    /// Where its record is.
    pub place: Place,
}

/// Values by class and id.
#[derive(Debug, Default)]
pub(in super::super) struct Values(BTreeMap<(u8, Bytes), Placed<Value>>);

/// A value of the catalog.
#[derive(Clone)]
pub(in super::super) struct Value {
    /// Its class.
    pub class: u8,
    /// Its id in the class.
    pub id: Bytes,
    /// Its place in the order of creation.
    pub rank: u64,
    /// What it is. May contain secrets.
    pub bytes: Bytes,
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Value").field("class", &self.class).field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl Values {
    /// Inserts or replaces a value; answers where it was.
    pub fn put(&mut self, class: u8, id: &[u8], rank: u64, value: &[u8], place: Place) -> Option<Place> {
        let id = Bytes::copy_from_slice(id);
        let value = Value { class, id: id.clone(), rank, bytes: Bytes::copy_from_slice(value) };
        self.0.insert((class, id), Placed { value, place }).map(|before| before.place)
    }

    /// Forgets a value; answers where it was.
    pub fn remove(&mut self, class: u8, id: &[u8]) -> Option<Place> {
        self.0.remove(&(class, Bytes::copy_from_slice(id))).map(|before| before.place)
    }

    /// Where a value is.
    pub fn place(&self, class: u8, id: &[u8]) -> Option<Place> {
        self.0.get(&(class, Bytes::copy_from_slice(id))).map(|value| value.place)
    }

    /// All of them, by class and id.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.values().map(|placed| &placed.value)
    }
}
