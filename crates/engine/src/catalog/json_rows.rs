//! The small records in memory, by kind and id.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use longshore_model::JsonRowKind;

use crate::StoredJson;

/// The small records at one moment.
#[derive(Default)]
pub(crate) struct JsonRows {
    kinds: BTreeMap<JsonRowKind, RowsOfKind>,
}

#[derive(Default)]
struct RowsOfKind {
    by_place: BTreeMap<u64, StoredJson>,
    places: HashMap<String, u64>,
    next_place: u64,
}

impl JsonRows {
    /// Those of a kind, oldest first.
    pub(crate) fn of(&self, kind: JsonRowKind) -> impl Iterator<Item = &StoredJson> {
        self.kinds.get(&kind).into_iter().flat_map(|kind| kind.by_place.values())
    }

    pub(crate) fn get(&self, kind: JsonRowKind, id: &str) -> Option<&StoredJson> {
        let kind = self.kinds.get(&kind)?;
        kind.by_place.get(kind.places.get(id)?)
    }

    /// Inserts a record, or replaces it where it is.
    pub(crate) fn put(&mut self, kind: JsonRowKind, id: String, json: Bytes) {
        let kind = self.kinds.entry(kind).or_default();
        let place = *kind.places.entry(id.clone()).or_insert(kind.next_place);
        kind.next_place = kind.next_place.max(place + 1);
        kind.by_place.insert(place, StoredJson { id, json });
    }

    pub(crate) fn remove(&mut self, kind: JsonRowKind, id: &str) {
        let Some(kind) = self.kinds.get_mut(&kind) else { return };
        if let Some(place) = kind.places.remove(id) {
            kind.by_place.remove(&place);
        }
    }
}
