//! A payload in a record: here, beside the records of its frame, or in a file of the blob folder.

use std::ops::Range;

use bytes::Bytes;

use super::coding::{Decoder, Malformed, put_bytes, put_number};
use super::format::form;
use super::frame::Frame;
use super::hash::hash;
use crate::{BlobRef, Payload};

/// Longer ones are kept beside the records, so that the folder can be opened without reading them. They then take
/// 13 bytes more, and often a second read.
const INLINE_BYTES_MAX: usize = 512;

/// Appends a payload to the record that is being made.
pub(in crate::embedded) fn put(frame: &mut Frame, payload: &Payload) {
    match payload {
        Payload::Inline(bytes) => put_inline(frame, bytes),
        Payload::Blob(blob) => {
            let out = frame.body();
            out.push(form::BLOB);
            put_number(out, blob.bytes);
            put_bytes(out, blob.name.as_bytes());
        }
    }
}

/// As [`put`], for bytes.
pub(in crate::embedded) fn put_inline(frame: &mut Frame, bytes: &Bytes) {
    if bytes.len() <= INLINE_BYTES_MAX {
        frame.body().push(form::INLINE);
        put_bytes(frame.body(), bytes);
    } else {
        frame.body().push(form::OUT_OF_LINE);
        frame.put_out_of_line(Bytes::clone(bytes));
        put_number(frame.body(), bytes.len() as u64);
        frame.body().extend_from_slice(&hash(0, bytes).to_le_bytes());
    }
}

/// A payload as its record has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum PayloadRef<'a> {
    /// In the record.
    Inline(&'a [u8]),
    /// Beside the records.
    OutOfLine(OutOfLine),
    /// In a file: its name and length.
    Blob(&'a str, u64),
}

/// Where the bytes of a payload are that are not in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct OutOfLine {
    /// From the record's first byte.
    distance: u32,
    /// Where the record has that distance, from its end.
    distance_from_end: usize,
    /// Their number.
    pub bytes: u32,
    hash: u64,
}

impl<'a> PayloadRef<'a> {
    /// Reads what [`put`] wrote.
    pub fn decode(at: &mut Decoder<'a>) -> Result<Self, Malformed> {
        match at.byte("how a payload is kept")? {
            form::INLINE => Ok(Self::Inline(at.bytes("a payload")?)),
            form::OUT_OF_LINE => Ok(Self::OutOfLine(OutOfLine {
                distance_from_end: at.rest().len(),
                distance: u32::from_le_bytes(at.array("a distance")?),
                bytes: at.small("a payload's length")?,
                hash: u64::from_le_bytes(at.array("a payload's hash")?),
            })),
            form::BLOB => {
                let bytes = at.number("a file's length")?;
                Ok(Self::Blob(at.text("a file's name")?, bytes))
            }
            _ => Err(Malformed("a known way to keep a payload")),
        }
    }

    /// The payload, with the bytes beside the records from `beside`.
    pub fn load<E>(self, beside: impl FnOnce(OutOfLine) -> Result<Bytes, E>) -> Result<Payload, E> {
        match self {
            Self::Inline(bytes) => Ok(Payload::Inline(Bytes::copy_from_slice(bytes))),
            Self::OutOfLine(place) => beside(place).map(Payload::Inline),
            Self::Blob(name, bytes) => Ok(Payload::Blob(BlobRef { name: name.into(), bytes })),
        }
    }
}

impl OutOfLine {
    /// Where it is in a file, for a record that begins at `record`.
    pub fn range(self, record: u32) -> Range<u64> {
        let first = u64::from(record) + u64::from(self.distance);
        first..first + u64::from(self.bytes)
    }

    /// Where in the record, of so many bytes, the distance is.
    pub fn place_of_distance(self, record_bytes: usize) -> usize {
        record_bytes - self.distance_from_end
    }

    /// Whether these are the bytes that were kept.
    pub fn is(self, bytes: &[u8]) -> bool {
        bytes.len() == self.bytes as usize && hash(0, bytes) == self.hash
    }
}
