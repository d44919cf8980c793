//! The small records in memory, by kind and id.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use longshore_model::RecordKind;

use crate::Record;

/// The small records at one moment.
#[derive(Default)]
pub(crate) struct Records {
    kinds: BTreeMap<RecordKind, Kind>,
}

#[derive(Default)]
struct Kind {
    by_place: BTreeMap<u64, Record>,
    places: HashMap<String, u64>,
    next_place: u64,
}

impl Records {
    /// Those of a kind, oldest first.
    pub(crate) fn of(&self, kind: RecordKind) -> impl Iterator<Item = &Record> {
        self.kinds.get(&kind).into_iter().flat_map(|kind| kind.by_place.values())
    }

    pub(crate) fn get(&self, kind: RecordKind, id: &str) -> Option<&Record> {
        let kind = self.kinds.get(&kind)?;
        kind.by_place.get(kind.places.get(id)?)
    }

    /// Inserts a record, or replaces it where it is.
    pub(crate) fn put(&mut self, kind: RecordKind, id: String, json: Bytes) {
        let kind = self.kinds.entry(kind).or_default();
        let place = *kind.places.entry(id.clone()).or_insert(kind.next_place);
        kind.next_place = kind.next_place.max(place + 1);
        kind.by_place.insert(place, Record { id, json });
    }

    pub(crate) fn remove(&mut self, kind: RecordKind, id: &str) {
        let Some(kind) = self.kinds.get_mut(&kind) else { return };
        if let Some(place) = kind.places.remove(id) {
            kind.by_place.remove(&place);
        }
    }
}
