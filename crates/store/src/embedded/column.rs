//! Reading columns without believing them: whatever bytes the file holds, the answer is a value or
//! [`StoreError::Corrupt`] with the table and the key, never a panic.

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row};

use super::error::{corrupt, from_sqlite};
use crate::{BlobRef, Payload, StoreError};

/// Every row of a query, decoded.
pub(super) fn collect<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let sqlite = |error| from_sqlite(&error);
    let mut statement = db.prepare_cached(sql).map_err(sqlite)?;
    let mut rows = statement.query(params).map_err(sqlite)?;
    let mut decoded = Vec::new();
    while let Some(row) = rows.next().map_err(sqlite)? {
        decoded.push(decode(row)?);
    }
    Ok(decoded)
}

/// The only row of a query, decoded.
pub(super) fn first<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl Fn(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    Ok(collect(db, sql, params, decode)?.pop())
}

/// The columns of one row, and its whereabouts for the error.
pub(super) struct Column<'row, 'statement> {
    /// The table.
    pub table: &'static str,
    /// The row's key.
    pub key: i64,
    /// The columns.
    pub row: &'row Row<'statement>,
}

impl Column<'_, '_> {
    /// The error for a column that makes no sense.
    pub fn corrupt(&self, index: usize, what: &str) -> StoreError {
        let name = self.row.as_ref().column_name(index).unwrap_or("?").to_owned();
        corrupt(self.table, self.key, format_args!("column `{name}` {what}"))
    }

    /// The raw value.
    pub fn value(&self, index: usize) -> Result<ValueRef<'_>, StoreError> {
        self.row.get_ref(index).map_err(|error| from_sqlite(&error))
    }

    /// A signed number.
    pub fn integer(&self, index: usize) -> Result<i64, StoreError> {
        match self.value(index)? {
            ValueRef::Integer(number) => Ok(number),
            _ => Err(self.corrupt(index, "is no integer")),
        }
    }

    /// A number that was kept as the signed one with the same bits.
    pub fn unsigned(&self, index: usize) -> Result<u64, StoreError> {
        self.integer(index).map(|number| number as u64)
    }

    /// A number of a smaller type.
    pub fn number<T: TryFrom<i64>>(&self, index: usize) -> Result<T, StoreError> {
        T::try_from(self.integer(index)?).map_err(|_| self.corrupt(index, "is out of range"))
    }

    /// Yes or no.
    pub fn flag(&self, index: usize) -> Result<bool, StoreError> {
        match self.integer(index)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.corrupt(index, "is neither 0 nor 1")),
        }
    }

    /// Text, if there is one.
    pub fn optional_text(&self, index: usize) -> Result<Option<&str>, StoreError> {
        match self.value(index)? {
            ValueRef::Null => Ok(None),
            ValueRef::Text(text) => {
                std::str::from_utf8(text).map(Some).map_err(|_| self.corrupt(index, "is not UTF-8"))
            }
            _ => Err(self.corrupt(index, "is no text")),
        }
    }

    /// Text that must be there.
    pub fn text(&self, index: usize) -> Result<&str, StoreError> {
        self.optional_text(index)?.ok_or_else(|| self.corrupt(index, "is missing"))
    }

    /// Bytes that must be there.
    pub fn bytes(&self, index: usize) -> Result<&[u8], StoreError> {
        match self.value(index)? {
            ValueRef::Blob(bytes) => Ok(bytes),
            _ => Err(self.corrupt(index, "is no blob")),
        }
    }

    /// A payload in three columns: the bytes, or the file's name and length.
    pub fn payload(&self, index: usize) -> Result<Option<Payload>, StoreError> {
        if let ValueRef::Blob(bytes) = self.value(index)? {
            return Ok(Some(Payload::Inline(Bytes::copy_from_slice(bytes))));
        }
        let Some(name) = self.optional_text(index + 1)? else { return Ok(None) };
        Ok(Some(Payload::Blob(BlobRef { name: name.into(), bytes: self.unsigned(index + 2)? })))
    }
}

/// A payload as the three columns that [`Column::payload`] reads.
pub(super) fn payload_columns(payload: Option<&Payload>) -> (Option<&[u8]>, Option<&str>, Option<i64>) {
    match payload {
        Some(Payload::Inline(bytes)) => (Some(&bytes[..]), None, None),
        Some(Payload::Blob(blob)) => (None, Some(&*blob.name), Some(blob.bytes as i64)),
        None => (None, None, None),
    }
}
