//! Small records: JSON under a kind and an id, for what needs no table of its own.

use std::fmt;

use bytes::Bytes;
use longshore_model::RecordKind;
use longshore_store::Write;

use super::Engine;
use crate::CatalogError;

/// A small record as it is kept. What the JSON says is the business of whoever put it there.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// Unique within its kind.
    pub id: String,
    /// JSON text.
    pub json: Bytes,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON may hold secrets.
        f.debug_struct("Record").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Engine {
    /// The small records of a kind, oldest first.
    pub fn records(&self, kind: RecordKind) -> Vec<Record> {
        self.catalog().records.of(kind).cloned().collect()
    }

    /// One small record.
    pub fn record(&self, kind: RecordKind, id: &str) -> Option<Record> {
        self.catalog().records.get(kind, id).cloned()
    }

    /// Inserts or replaces a small record.
    pub async fn put_record(&self, kind: RecordKind, record: Record) -> Result<(), CatalogError> {
        self.put_records(kind, vec![record]).await
    }

    /// Inserts or replaces small records, all or none.
    pub async fn put_records(&self, kind: RecordKind, records: Vec<Record>) -> Result<(), CatalogError> {
        let _door = self.inner.door.lock().await;
        self.keep_records(kind, records).await
    }

    /// Removes a small record.
    pub async fn delete_record(&self, kind: RecordKind, id: &str) -> Result<(), CatalogError> {
        let _door = self.inner.door.lock().await;
        self.record(kind, id).ok_or(CatalogError::NotFound)?;
        self.forget_records(kind, vec![id.to_owned()]).await
    }

    /// Writes records while the caller holds the door.
    pub(super) async fn keep_records(
        &self,
        kind: RecordKind,
        records: Vec<Record>,
    ) -> Result<(), CatalogError> {
        let write = |record: &Record| Write::PutRecord(kind, record.id.clone(), record.json.clone());
        self.commit(records.iter().map(write).collect()).await?;
        let mut catalog = self.catalog_mut();
        for record in records {
            catalog.records.put(kind, record.id, record.json);
        }
        Ok(())
    }

    /// Removes records while the caller holds the door.
    pub(super) async fn forget_records(
        &self,
        kind: RecordKind,
        ids: Vec<String>,
    ) -> Result<(), CatalogError> {
        self.commit(ids.iter().map(|id| Write::DeleteRecord(kind, id.clone())).collect()).await?;
        let mut catalog = self.catalog_mut();
        for id in &ids {
            catalog.records.remove(kind, id);
        }
        Ok(())
    }
}
