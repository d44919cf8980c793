//! The values of the catalog as stored: resources, JSON rows and settings.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::record_ref::RecordRef;

/// A value and the place of its record.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueEntry<V> {
    pub value: V,
    pub place: RecordRef,
}

/// Values by class and id.
#[derive(Debug, Default)]
pub(in super::super) struct Values(BTreeMap<(u8, Bytes), ValueEntry<Value>>);

/// A value of the catalog.
#[derive(Clone)]
pub(in super::super) struct Value {
    /// The class, a number of `format::class`.
    pub class: u8,
    /// The id, unique in the class.
    pub id: Bytes,
    /// The position in the order of creation.
    pub rank: u64,
    /// The stored bytes. May contain secrets.
    pub bytes: Bytes,
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Value").field("class", &self.class).field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl Values {
    /// Inserts or replaces a value. Returns the place of the replaced one.
    pub fn put(
        &mut self,
        class: u8,
        id: &[u8],
        rank: u64,
        value: &[u8],
        place: RecordRef,
    ) -> Option<RecordRef> {
        let id = Bytes::copy_from_slice(id);
        let value = Value { class, id: id.clone(), rank, bytes: Bytes::copy_from_slice(value) };
        self.0.insert((class, id), ValueEntry { value, place }).map(|before| before.place)
    }

    /// Removes a value. Returns its place.
    pub fn remove(&mut self, class: u8, id: &[u8]) -> Option<RecordRef> {
        self.0.remove(&(class, Bytes::copy_from_slice(id))).map(|before| before.place)
    }

    /// Returns the place of a value.
    pub fn place(&self, class: u8, id: &[u8]) -> Option<RecordRef> {
        self.0.get(&(class, Bytes::copy_from_slice(id))).map(|value| value.place)
    }

    /// Returns all values, ordered by class and id.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.values().map(|placed| &placed.value)
    }
}
