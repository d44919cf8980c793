//! A payload in a record: inline, out of line behind the records of its frame, or in a blob file.

use std::ops::Range;

use bytes::Bytes;

use super::coding::{Decoder, Malformed, put_bytes, put_number};
use super::format::form;
use super::frame::Frame;
use super::hash::hash;
use crate::{BlobRef, Payload};

/// Bytes of an inline payload. Larger ones are stored out of line, so that the log is opened without reading them. That
/// takes 13 bytes more, and often a second read.
const INLINE_BYTES_MAX: usize = 512;

/// Appends a payload to the body of the frame's current record.
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

/// Appends the bytes of a payload, inline or out of line.
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

/// A payload as stored in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum PayloadRef<'a> {
    /// The payload's bytes, in the record.
    Inline(&'a [u8]),
    /// The place behind the records of the frame.
    OutOfLine(OutOfLine),
    /// The name and length of a blob file.
    Blob(&'a str, u64),
}

/// The place, length and hash of an out-of-line payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) struct OutOfLine {
    /// Bytes from the record's first byte to the payload's.
    distance: u32,
    /// The place of the distance field: bytes before the record's end.
    distance_from_end: usize,
    /// The payload's length in bytes.
    pub bytes: u32,
    hash: u64,
}

impl<'a> PayloadRef<'a> {
    /// Decodes what [`put`] has encoded.
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

    /// Returns the payload. `fetch` reads the bytes of an out-of-line payload.
    pub fn load<E>(self, fetch: impl FnOnce(OutOfLine) -> Result<Bytes, E>) -> Result<Payload, E> {
        match self {
            Self::Inline(bytes) => Ok(Payload::Inline(Bytes::copy_from_slice(bytes))),
            Self::OutOfLine(place) => fetch(place).map(Payload::Inline),
            Self::Blob(name, bytes) => Ok(Payload::Blob(BlobRef { name: name.into(), bytes })),
        }
    }
}

impl OutOfLine {
    /// Returns the range of the payload in the segment, for a record at offset `record`.
    pub fn range(self, record: u32) -> Range<u64> {
        let first = u64::from(record) + u64::from(self.distance);
        first..first + u64::from(self.bytes)
    }

    /// Returns the offset of the distance field in a record of `record_bytes` bytes.
    pub fn place_of_distance(self, record_bytes: usize) -> usize {
        record_bytes - self.distance_from_end
    }

    /// Whether `bytes` have the length and the hash of the stored payload.
    pub fn is(self, bytes: &[u8]) -> bool {
        bytes.len() == self.bytes as usize && hash(0, bytes) == self.hash
    }
}
