//! The values of the catalog: their classes, and their decoding.

use bytes::Bytes;
use longshore_model::JsonRowKind;
use longshore_store::{Catalog, JsonRow, StoreError};
use serde_json::from_slice;

/// The classes of values, the same numbers as in the embedded store's log.
pub(crate) mod class {
    pub(crate) const ENDPOINT: i16 = 1;
    pub(crate) const TEMPLATE: i16 = 2;
    pub(crate) const KEY: i16 = 3;
    pub(crate) const SETTING: i16 = 4;
    /// Plus the number of the JSON row's kind.
    pub(crate) const JSON_ROW: i16 = 64;
}

/// Returns the class of JSON rows of a kind.
pub(crate) fn json_row_class(kind: JsonRowKind) -> i16 {
    class::JSON_ROW + i16::from(kind.number())
}

/// Adds a stored value to the catalog. Values come in the order of their creation.
///
/// # Errors
/// [`StoreError::Corrupt`] if the value does not parse. The text has no part of the value, which can be secret.
pub(crate) fn add(catalog: &mut Catalog, class: i16, id: Vec<u8>, value: Vec<u8>) -> Result<(), StoreError> {
    let corrupt =
        |what: &str| StoreError::Corrupt(format!("a value of class {class} in the database {what}"));
    let unparsed =
        |error: serde_json::Error| corrupt(&format!("does not parse at column {}", error.column()));
    let name = |id: Vec<u8>| String::from_utf8(id).map_err(|_| corrupt("has an id that is not UTF-8 text"));
    match class {
        class::ENDPOINT => catalog.endpoints.push(from_slice(&value).map_err(unparsed)?),
        class::TEMPLATE => catalog.templates.push(from_slice(&value).map_err(unparsed)?),
        class::KEY => catalog.keys.push(from_slice(&value).map_err(unparsed)?),
        class::SETTING => drop(catalog.settings.insert(name(id)?, Bytes::from(value))),
        _ => {
            let kind = u8::try_from(class - class::JSON_ROW).ok().and_then(JsonRowKind::from_number);
            let kind = kind.ok_or_else(|| corrupt("has an unknown class"))?;
            catalog.json_rows.push(JsonRow { kind, id: name(id)?, json: Bytes::from(value) });
        }
    }
    Ok(())
}
