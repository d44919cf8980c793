//! A chunk of a stream, and its stored form.
//!
//! A chunk without metrics that is no part of a split output is stored as its JSON text. Any other chunk begins with a
//! header, whose first byte begins no JSON text ([ADR 0018](../../../docs/adr/0018-chunks-with-a-header.md)):
//!
//! | Bytes | Content |
//! |---|---|
//! | 1 | 1: the version of this header |
//! | 1 | flags: 1 metrics follow the output, 2 the next chunk continues this output, 4 a comma precedes this part |
//! | 3 × 4 | little endian: the lengths of the output, of its `head` and of its `tail`, in bytes |
//! | | the output, then the metrics |

use bytes::{BufMut as _, Bytes, BytesMut};
use longshore_store::ChunkRow;

use crate::EndpointError;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 14;
const HAS_METRICS: u8 = 1;
const GOES_ON: u8 = 2;
const AFTER_COMMA: u8 = 4;

/// One output of a worker's generator, or a part of one that is longer than a chunk may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The output that the worker yielded, or a part of it that is valid by itself: JSON text.
    pub output: Bytes,
    /// The worker's metrics of this output: the text of a JSON object. `None` if the worker sent none.
    pub metrics: Option<Bytes>,
    /// How this part is joined to the other parts of the same output. The default for a whole output.
    pub seam: Seam,
}

/// How a part of an output is joined to the parts beside it.
///
/// The text of the whole output is the text of its parts, without the `tail` of every part except the last and without the
/// `head` of every part except the first. A comma precedes each part with `after_comma`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seam {
    /// The next chunk is a part of the same output.
    pub goes_on: bool,
    /// The output has a comma between the previous part and this one.
    pub after_comma: bool,
    /// Length of the text at the start that opens the brackets which the previous part has closed, in bytes.
    pub head: u32,
    /// Length of the text at the end that closes the brackets which the next part opens again, in bytes.
    pub tail: u32,
}

/// A chunk, and its offset in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamChunk {
    /// The number of the chunk in the stream, counted from 0. Offsets of dropped chunks are not used again.
    pub offset: u64,
    /// The chunk as the worker sent it.
    pub chunk: Chunk,
}

impl From<Bytes> for Chunk {
    fn from(output: Bytes) -> Self {
        Self { output, ..Self::default() }
    }
}

impl Chunk {
    /// Returns the stored form. An output alone shares its memory.
    pub(crate) fn encode(self) -> Bytes {
        let Self { output, metrics, seam } = self;
        let lengths = [u32::try_from(output.len()).unwrap_or(u32::MAX), seam.head, seam.tail];
        if metrics.is_none() && seam == Seam::default() {
            return output;
        }
        let metrics_bytes = metrics.as_ref().map_or(0, Bytes::len);
        let mut stored = BytesMut::with_capacity(HEADER_BYTES + output.len() + metrics_bytes);
        let flags =
            [(metrics.is_some(), HAS_METRICS), (seam.goes_on, GOES_ON), (seam.after_comma, AFTER_COMMA)];
        stored.put_u8(VERSION);
        stored.put_u8(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        for length in lengths {
            stored.put_u32_le(length);
        }
        stored.extend_from_slice(&output);
        stored.extend_from_slice(&metrics.unwrap_or_default());
        stored.freeze()
    }

    /// Reads the stored form. `None` if the header is of another version, is cut off, or its lengths exceed the stored bytes.
    fn decode(stored: &Bytes) -> Option<Self> {
        // A byte below 0x20 is the version of a header: no stored JSON text begins with one.
        if stored.first().is_none_or(|first| *first >= b' ') {
            return Some(Self::from(stored.clone()));
        }
        let (header, body) = stored.split_first_chunk::<HEADER_BYTES>()?;
        let [VERSION, flags, ..] = *header else { return None };
        let number = |at: usize| Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?));
        let (output_bytes, head, tail) = (usize::try_from(number(2)?).ok()?, number(6)?, number(10)?);
        let output = body.get(..output_bytes)?;
        let shared = |part: &[u8]| stored.slice_ref(part);
        let has_metrics = flags & HAS_METRICS != 0;
        let metrics = has_metrics.then(|| shared(&body[output_bytes..]));
        let seam = Seam { goes_on: flags & GOES_ON != 0, after_comma: flags & AFTER_COMMA != 0, head, tail };
        Some(Self { output: shared(output), metrics, seam })
    }

    /// The length of output and metrics together, in bytes.
    pub fn bytes(&self) -> usize {
        self.output.len() + self.metrics.as_ref().map_or(0, Bytes::len)
    }
}

/// Reads stored chunks, in the same order.
///
/// # Errors
///
/// `Unavailable` with the offset of the first chunk that cannot be read.
pub(crate) fn decoded(rows: Vec<ChunkRow>) -> Result<Vec<StreamChunk>, EndpointError> {
    let chunk = |row: ChunkRow| match Chunk::decode(&row.bytes) {
        Some(chunk) => Ok(StreamChunk { offset: row.offset, chunk }),
        None => Err(EndpointError::Unavailable(format!(
            "chunk {} of the stream cannot be read: it is corrupt or was written by a newer version; start that version",
            row.offset
        ))),
    };
    rows.into_iter().map(chunk).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_output_alone_is_stored_unchanged_and_shares_its_memory() {
        let output = Bytes::from_static(b"{\"a\": 1.0}");
        let stored = Chunk::from(output.clone()).encode();
        assert_eq!(stored.as_ptr(), output.as_ptr());
        assert_eq!(Chunk::decode(&stored), Some(Chunk::from(output)));
    }

    #[test]
    fn chunks_of_an_older_version_are_read() {
        for text in ["{\"output\":1,\"metrics\":{}}", "\"x\"", "null", "-1", "[]", ""] {
            let row = ChunkRow { offset: 3, bytes: Bytes::from_static(text.as_bytes()) };
            let [read] = &decoded(vec![row]).unwrap()[..] else { panic!("one chunk") };
            assert_eq!((read.offset, &read.chunk), (3, &Chunk::from(Bytes::from_static(text.as_bytes()))));
        }
    }

    #[test]
    fn the_bytes_of_the_header_do_not_change() {
        let seam = Seam { goes_on: true, after_comma: true, head: 258, tail: 3 };
        let chunk =
            Chunk { output: Bytes::from_static(b"[1]"), metrics: Some(Bytes::from_static(b"{}")), seam };
        let stored = chunk.clone().encode();
        assert_eq!(stored, &b"\x01\x07\x03\0\0\0\x02\x01\0\0\x03\0\0\0[1]{}"[..]);
        assert_eq!(Chunk::decode(&stored), Some(chunk));
    }

    #[test]
    fn the_error_of_a_corrupt_chunk_has_its_offset() {
        for stored in
            [&b"\x01"[..], b"\x02\0\0\0\0\0\0\0\0\0\0\0\0\0", b"\x01\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0"]
        {
            let row = ChunkRow { offset: 7, bytes: Bytes::from_static(stored) };
            let error = decoded(vec![row]).unwrap_err().to_string();
            assert!(error.contains("chunk 7 "), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_chunk_is_read_as_it_was_stored(text: String, metrics: Option<String>, flags: (bool, bool), cut: (u32, u32)) {
            let seam = Seam { goes_on: flags.0, after_comma: flags.1, head: cut.0, tail: cut.1 };
            let output = Bytes::from(format!("\"{text}\""));
            let chunk = Chunk { output, metrics: metrics.map(Bytes::from), seam };
            prop_assert_eq!(Chunk::decode(&chunk.clone().encode()), Some(chunk));
        }

        #[test]
        fn no_stored_bytes_cause_a_panic(stored: Vec<u8>) {
            let _ = Chunk::decode(&stored.into());
        }
    }
}
