//! Decodes the catalog from the values in the index.

use bytes::Bytes;
use longshore_model::JsonRowKind;
use serde::de::DeserializeOwned;

use crate::embedded::index::{Index, Value};
use crate::embedded::log::format::class;
use crate::{Catalog, JsonRow, StoreError};

/// Copies the values in the order of creation, and the largest endpoint number, for [`read`].
pub(in crate::embedded) fn values(index: &Index) -> (Vec<Value>, u32) {
    let mut values: Vec<Value> = index.values.iter().cloned().collect();
    values.sort_by_key(|value| value.rank);
    (values, index.last_endpoint())
}

/// Decodes the records of the catalog.
pub(in crate::embedded) fn read(values: &[Value], last_endpoint_no: u32) -> Result<Catalog, StoreError> {
    let mut catalog = Catalog { last_endpoint_no, ..Catalog::default() };
    for value in values {
        match value.class {
            class::ENDPOINT => catalog.endpoints.push(parse(value)?),
            class::TEMPLATE => catalog.templates.push(parse(value)?),
            class::KEY => catalog.keys.push(parse(value)?),
            class::SETTING => _ = catalog.settings.insert(id(value)?, Bytes::clone(&value.bytes)),
            _ => catalog.json_rows.push(record(value)?),
        }
    }
    catalog.endpoints.sort_by_key(|endpoint| endpoint.no);
    Ok(catalog)
}

fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, StoreError> {
    // The column only: the text of the error could quote a secret.
    serde_json::from_slice(&value.bytes)
        .map_err(|error| corrupt(value, format_args!("does not parse at column {}", error.column())))
}

fn record(value: &Value) -> Result<JsonRow, StoreError> {
    let kind = value.class.checked_sub(class::JSON_ROW).and_then(JsonRowKind::from_number);
    let kind = kind.ok_or_else(|| corrupt(value, "has an unknown class"))?;
    Ok(JsonRow { kind, id: id(value)?, json: Bytes::clone(&value.bytes) })
}

fn id(value: &Value) -> Result<String, StoreError> {
    String::from_utf8(value.id.to_vec()).map_err(|_| corrupt(value, "has an id that is not UTF-8 text"))
}

fn corrupt(value: &Value, what: impl std::fmt::Display) -> StoreError {
    let (class, rank) = (value.class, value.rank);
    StoreError::Corrupt(format!(
        "the value of class {class} and rank {rank} {what}; restore the data directory from a backup"
    ))
}
