//! JSON rows: resources that need no row kind of their own, in memory and in the store.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use bytes::Bytes;
use longshore_model::JsonRowKind;
use longshore_store::{Catalog as StoredCatalog, Write};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Catalog;
use crate::CatalogError;
use crate::secrets::sealed_record;

/// The id and the JSON text of one JSON row. The text may hold secrets, which are not encrypted here.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoredJson {
    /// Unique within the kind of the row.
    pub(crate) id: String,
    /// JSON text in the form of its kind.
    pub(crate) json: Bytes,
}

impl fmt::Debug for StoredJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON may hold secrets.
        f.debug_struct("StoredJson").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The JSON rows in memory, by kind and id.
#[derive(Default)]
pub(crate) struct JsonRows {
    kinds: BTreeMap<JsonRowKind, RowsOfKind>,
}

/// The rows of one kind, in the order of their creation.
#[derive(Default)]
struct RowsOfKind {
    by_place: BTreeMap<u64, StoredJson>,
    places: HashMap<String, u64>,
    next_place: u64,
}

impl JsonRows {
    /// The rows of a kind, oldest first.
    pub(crate) fn of(&self, kind: JsonRowKind) -> impl Iterator<Item = &StoredJson> {
        self.kinds.get(&kind).into_iter().flat_map(|kind| kind.by_place.values())
    }

    /// The row with this kind and id.
    pub(crate) fn get(&self, kind: JsonRowKind, id: &str) -> Option<&StoredJson> {
        let kind = self.kinds.get(&kind)?;
        kind.by_place.get(kind.places.get(id)?)
    }

    /// Inserts a row, or replaces the one with its id in its place.
    pub(crate) fn put(&mut self, kind: JsonRowKind, id: String, json: Bytes) {
        let kind = self.kinds.entry(kind).or_default();
        let place = *kind.places.entry(id.clone()).or_insert(kind.next_place);
        kind.next_place = kind.next_place.max(place + 1);
        kind.by_place.insert(place, StoredJson { id, json });
    }

    /// Removes the row with this kind and id, if there is one.
    pub(crate) fn remove(&mut self, kind: JsonRowKind, id: &str) {
        let Some(kind) = self.kinds.get_mut(&kind) else { return };
        if let Some(place) = kind.places.remove(id) {
            kind.by_place.remove(&place);
        }
    }
}

impl Catalog {
    /// The row with this kind and id.
    pub(super) fn json_row(&self, kind: JsonRowKind, id: &str) -> Option<StoredJson> {
        self.state().json_rows.get(kind, id).cloned()
    }

    /// The resources of a kind, oldest first. A corrupt row is logged and left out.
    pub(super) fn resources<T: DeserializeOwned>(&self, kind: JsonRowKind) -> Vec<T> {
        self.state().json_rows.of(kind).filter_map(|row| decoded(kind, row)).collect()
    }

    /// The resource with this kind and id; `None` also for a corrupt row, which is logged.
    pub(super) fn resource<T: DeserializeOwned>(&self, kind: JsonRowKind, id: &str) -> Option<T> {
        self.state().json_rows.get(kind, id).and_then(|row| decoded(kind, row))
    }

    /// Inserts or replaces a resource. The caller holds the lock.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the row could not be made durable, [`CatalogError::Unavailable`] if it cannot be
    /// serialized.
    pub(super) async fn put_resource(
        &self,
        kind: JsonRowKind,
        id: &str,
        resource: &(impl Serialize + Sync),
    ) -> Result<(), CatalogError> {
        let json =
            serde_json::to_vec(resource).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        self.put_json_row(kind, StoredJson { id: id.to_owned(), json: json.into() }).await
    }

    /// Inserts or replaces a JSON row. The store gets it encrypted if its kind is secret. The caller holds the lock.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the row could not be made durable.
    pub(super) async fn put_json_row(&self, kind: JsonRowKind, row: StoredJson) -> Result<(), CatalogError> {
        let sealed = sealed_record(&self.services.vault, kind, &row.id, &row.json)?;
        self.commit(vec![Write::PutJsonRow(kind, row.id.clone(), sealed)]).await?;
        self.state_mut().json_rows.put(kind, row.id, row.json);
        Ok(())
    }

    /// Deletes a JSON row. The caller holds the lock.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Store`] if the deletion could not be made durable.
    pub(super) async fn delete_json_row(&self, kind: JsonRowKind, id: &str) -> Result<(), CatalogError> {
        self.commit(vec![Write::DeleteJsonRow(kind, id.to_owned())]).await?;
        self.state_mut().json_rows.remove(kind, id);
        Ok(())
    }
}

/// Removes the JSON rows of a kind from the stored catalog and returns them, oldest first. The catalog in memory has no
/// rows of this kind.
pub(crate) fn take_rows(stored: &mut StoredCatalog, kind: JsonRowKind) -> Vec<StoredJson> {
    let (taken, others): (Vec<_>, _) =
        std::mem::take(&mut stored.json_rows).into_iter().partition(|row| row.kind == kind);
    stored.json_rows = others;
    taken.into_iter().map(|row| StoredJson { id: row.id, json: row.json }).collect()
}

/// The resource in a row. A corrupt row is logged.
pub(crate) fn decoded<T: DeserializeOwned>(kind: JsonRowKind, row: &StoredJson) -> Option<T> {
    let decoded = serde_json::from_slice(&row.json);
    // The position of the error and not its text, because rows may hold secrets.
    let note = |error: &serde_json::Error| {
        tracing::error!(
            kind = kind.number(),
            id = row.id,
            column = error.column(),
            "corrupt JSON row ignored"
        );
    };
    decoded.inspect_err(note).ok()
}
