//! How payloads and outcomes are stored in a column of bytes.
//!
//! A payload is a byte of form, and then: 1 the bytes; 3 the length of a file beside the database, 8 bytes with the lowest
//! first, and the file's name.
//!
//! An outcome is a byte of flags (1 an output, 2 an error), the error as 4 bytes of length with the lowest first and the text
//! if flagged, and the output as a payload if flagged.

use std::error::Error;

use bytes::{BufMut as _, Bytes, BytesMut};
use longshore_store::{BlobRef, OutcomeRow, Payload, StoreError};
use tokio_postgres::types::{IsNull, ToSql, Type, accepts, to_sql_checked};

const INLINE: u8 = 1;
const BLOB: u8 = 3;
const OUTPUT: u8 = 1;
const ERROR: u8 = 2;

/// A payload as an argument of a statement. Its bytes are copied once, into the message to the database.
#[derive(Debug)]
pub(crate) struct PayloadColumn(pub Payload);

/// An outcome as an argument of a statement.
#[derive(Debug)]
pub(crate) struct OutcomeColumn(pub OutcomeRow);

/// Bytes as an argument of a statement.
#[derive(Debug)]
pub(crate) struct BytesColumn(pub Bytes);

impl ToSql for PayloadColumn {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        put_payload(out, &self.0);
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

impl ToSql for OutcomeColumn {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let OutcomeRow { output, error } = &self.0;
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        out.put_u8(flag(output.is_some(), OUTPUT) | flag(error.is_some(), ERROR));
        if let Some(error) = error {
            out.put_u32_le(u32::try_from(error.len())?);
            out.put_slice(error.as_bytes());
        }
        if let Some(output) = output {
            put_payload(out, output);
        }
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

impl ToSql for BytesColumn {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    accepts!(BYTEA);
    to_sql_checked!();
}

fn put_payload(out: &mut BytesMut, payload: &Payload) {
    match payload {
        Payload::Inline(bytes) => {
            out.put_u8(INLINE);
            out.put_slice(bytes);
        }
        Payload::Blob(blob) => {
            out.put_u8(BLOB);
            out.put_u64_le(blob.bytes);
            out.put_slice(blob.name.as_bytes());
        }
    }
}

/// Decodes a stored payload.
///
/// # Errors
/// [`StoreError::Corrupt`] if no version writes these bytes.
pub(crate) fn payload(mut stored: Bytes) -> Result<Payload, StoreError> {
    let malformed = || StoreError::Corrupt("a payload in the database has an unknown form".to_owned());
    if stored.is_empty() {
        return Err(malformed());
    }
    match stored.split_to(1)[0] {
        INLINE => Ok(Payload::Inline(stored)),
        BLOB => {
            let (bytes, name) = stored.split_first_chunk().ok_or_else(malformed)?;
            let name = std::str::from_utf8(name).map_err(|_| malformed())?;
            Ok(Payload::Blob(BlobRef { name: name.into(), bytes: u64::from_le_bytes(*bytes) }))
        }
        _ => Err(malformed()),
    }
}

/// Decodes a stored outcome.
///
/// # Errors
/// [`StoreError::Corrupt`] if no version writes these bytes.
pub(crate) fn outcome(mut stored: Bytes) -> Result<OutcomeRow, StoreError> {
    let malformed = || StoreError::Corrupt("an outcome in the database has an unknown form".to_owned());
    if stored.is_empty() {
        return Err(malformed());
    }
    let flags = stored.split_to(1)[0];
    let mut outcome = OutcomeRow::default();
    if flags & ERROR != 0 {
        let length = stored.split_first_chunk().map(|(length, _)| u32::from_le_bytes(*length) as usize);
        let length = length.filter(|length| stored.len() - 4 >= *length).ok_or_else(malformed)?;
        let error = stored.split_to(4 + length).slice(4..);
        outcome.error = Some(std::str::from_utf8(&error).map_err(|_| malformed())?.into());
    }
    if flags & OUTPUT != 0 {
        outcome.output = Some(payload(stored)?);
    } else if !stored.is_empty() {
        return Err(malformed());
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_panic() {
        for length in 0..16 {
            for byte in [0, 1, 2, 3, 4, 0xff] {
                let stored = Bytes::from(vec![byte; length]);
                let _ = (payload(stored.clone()), outcome(stored));
            }
        }
    }

    #[test]
    fn an_outcome_survives_a_round_trip() {
        let blob = Payload::Blob(BlobRef { name: "1/2.output".into(), bytes: 1 << 40 });
        let inline = Payload::Inline(Bytes::from_static(b"\0\xff"));
        for output in [None, Some(blob), Some(inline), Some(Payload::Inline(Bytes::new()))] {
            for error in [None, Some(""), Some("no\0 \u{fc}")] {
                let row = OutcomeRow { output: output.clone(), error: error.map(Into::into) };
                let mut out = BytesMut::new();
                OutcomeColumn(row.clone()).to_sql(&Type::BYTEA, &mut out).unwrap();
                assert_eq!(outcome(out.freeze()).unwrap(), row);
            }
        }
    }
}
