//! Small records: JSON under a kind and an id, for what needs no table of its own.

use std::fmt;

use bytes::Bytes;
use longshore_model::JsonRowKind;
use longshore_store::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Engine;
use crate::CatalogError;
use crate::secrets::sealed_record;

/// A small record as it is kept. What the JSON says is the business of whoever put it there.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredJson {
    /// Unique within its kind.
    pub id: String,
    /// JSON text.
    pub json: Bytes,
}

impl fmt::Debug for StoredJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON may hold secrets.
        f.debug_struct("Record").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Engine {
    /// The small records of a kind, oldest first.
    pub fn records(&self, kind: JsonRowKind) -> Vec<StoredJson> {
        self.catalog().json_rows.of(kind).cloned().collect()
    }

    /// One small record.
    pub fn record(&self, kind: JsonRowKind, id: &str) -> Option<StoredJson> {
        self.catalog().json_rows.get(kind, id).cloned()
    }

    /// Inserts or replaces a small record.
    pub async fn put_record(&self, kind: JsonRowKind, record: StoredJson) -> Result<(), CatalogError> {
        self.put_records(kind, vec![record]).await
    }

    /// Inserts or replaces small records, all or none.
    pub async fn put_records(&self, kind: JsonRowKind, records: Vec<StoredJson>) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        self.keep_records(kind, records).await
    }

    /// Removes a small record.
    pub async fn delete_record(&self, kind: JsonRowKind, id: &str) -> Result<(), CatalogError> {
        let _door = self.inner.catalog_lock.lock().await;
        self.record(kind, id).ok_or(CatalogError::NotFound)?;
        self.forget_records(kind, vec![id.to_owned()]).await
    }

    /// The records of a kind as what they say. One that makes no sense is left out.
    pub(super) fn typed_records<T: DeserializeOwned>(&self, kind: JsonRowKind) -> Vec<T> {
        self.catalog().json_rows.of(kind).filter_map(|record| decoded(kind, record)).collect()
    }

    /// One record as what it says.
    pub(super) fn typed_record<T: DeserializeOwned>(&self, kind: JsonRowKind, id: &str) -> Option<T> {
        self.catalog().json_rows.get(kind, id).and_then(|record| decoded(kind, record))
    }

    /// Writes what a record says while the caller holds the door.
    pub(super) async fn keep_typed(
        &self,
        kind: JsonRowKind,
        id: &str,
        record: &(impl Serialize + Sync),
    ) -> Result<(), CatalogError> {
        let json =
            serde_json::to_vec(record).map_err(|error| CatalogError::Unavailable(error.to_string()))?;
        self.keep_records(kind, vec![StoredJson { id: id.to_owned(), json: json.into() }]).await
    }

    /// Writes records while the caller holds the door.
    pub(super) async fn keep_records(
        &self,
        kind: JsonRowKind,
        records: Vec<StoredJson>,
    ) -> Result<(), CatalogError> {
        let write = |record: &StoredJson| {
            let kept = sealed_record(self.vault(), kind, &record.id, &record.json)?;
            Ok(Write::PutJsonRow(kind, record.id.clone(), kept))
        };
        let writes: Result<_, CatalogError> = records.iter().map(write).collect();
        self.commit(writes?).await?;
        let mut catalog = self.catalog_mut();
        for record in records {
            catalog.json_rows.put(kind, record.id, record.json);
        }
        Ok(())
    }

    /// Removes records while the caller holds the door.
    pub(super) async fn forget_records(
        &self,
        kind: JsonRowKind,
        ids: Vec<String>,
    ) -> Result<(), CatalogError> {
        self.commit(ids.iter().map(|id| Write::DeleteJsonRow(kind, id.clone())).collect()).await?;
        let mut catalog = self.catalog_mut();
        for id in &ids {
            catalog.json_rows.remove(kind, id);
        }
        Ok(())
    }
}

fn decoded<T: DeserializeOwned>(kind: JsonRowKind, record: &StoredJson) -> Option<T> {
    let decoded = serde_json::from_slice(&record.json);
    // Where it is wrong, not what it says: records hold secrets.
    let note = |error: &serde_json::Error| {
        tracing::error!(?kind, id = record.id, column = error.column(), "a stored record makes no sense");
    };
    decoded.inspect_err(note).ok()
}
