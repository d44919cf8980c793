//! A chunk of a stream, and the bytes that it is stored as.
//!
//! Most chunks are an output alone, and are stored as its JSON text. Any other begins with a byte that no JSON text
//! begins with ([ADR 0018](../../../docs/adr/0018-chunks-with-a-header.md)):
//!
//! | Bytes | What |
//! |---|---|
//! | 1 | 1: the version of this header |
//! | 1 | flags: 1 metrics follow the output, 2 the next chunk goes on with this output, 4 a comma stands before this part |
//! | 3 × 4 | little endian: bytes of the output, of its `head` and of its `tail` |
//! | | the output, then the metrics |

use bytes::{BufMut as _, Bytes, BytesMut};
use longshore_store::ChunkRow;

use crate::EndpointError;

const VERSION: u8 = 1;
const HEADER_BYTES: usize = 14;
const HAS_METRICS: u8 = 1;
const GOES_ON: u8 = 2;
const AFTER_COMMA: u8 = 4;

/// A chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// What the worker yielded: JSON text.
    pub output: Bytes,
    /// What it says about that, if anything: a JSON object.
    pub metrics: Option<Bytes>,
    /// How the output and its neighbours make a whole, where it is a part.
    pub seam: Seam,
}

/// Where a part of an output fits the other parts.
///
/// The text of the whole is the text of its parts without the `tail` of all but the last and the `head` of all but the
/// first, with a comma between them where the second one says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seam {
    /// The next chunk is a part of the same output.
    pub goes_on: bool,
    /// A comma stands between the part before and this one.
    pub after_comma: bool,
    /// Bytes at the start that open again what the part before has closed.
    pub head: u32,
    /// Bytes at the end that close what the next part goes on with.
    pub tail: u32,
}

/// A chunk at its place in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamChunk {
    /// Its number.
    pub offset: u64,
    /// The chunk.
    pub chunk: Chunk,
}

impl From<Bytes> for Chunk {
    fn from(output: Bytes) -> Self {
        Self { output, ..Self::default() }
    }
}

impl Chunk {
    /// The bytes to store.
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

    /// Reads what was stored. None where that makes no sense.
    fn decode(stored: &Bytes) -> Option<Self> {
        // JSON text begins with none of these, and a later version of the header with another.
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

    /// The bytes of its JSON texts.
    pub fn bytes(&self) -> usize {
        self.output.len() + self.metrics.as_ref().map_or(0, Bytes::len)
    }
}

/// Chunks as they were stored.
pub(crate) fn decoded(rows: Vec<ChunkRow>) -> Result<Vec<StreamChunk>, EndpointError> {
    let chunk = |row: ChunkRow| match Chunk::decode(&row.bytes) {
        Some(chunk) => Ok(StreamChunk { offset: row.offset, chunk }),
        None => Err(EndpointError::Unavailable(format!(
            "chunk {} of the stream cannot be read; if a newer version has written it, start that one",
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
    fn an_output_alone_is_stored_as_it_is_and_shares_its_memory() {
        let output = Bytes::from_static(b"{\"a\": 1.0}");
        let stored = Chunk::from(output.clone()).encode();
        assert_eq!(stored.as_ptr(), output.as_ptr());
        assert_eq!(Chunk::decode(&stored), Some(Chunk::from(output)));
    }

    #[test]
    fn what_an_older_version_stored_is_read() {
        for text in ["{\"output\":1,\"metrics\":{}}", "\"x\"", "null", "-1", "[]", ""] {
            let row = ChunkRow { offset: 3, bytes: Bytes::from_static(text.as_bytes()) };
            let [read] = &decoded(vec![row]).unwrap()[..] else { panic!("one chunk") };
            assert_eq!((read.offset, &read.chunk), (3, &Chunk::from(Bytes::from_static(text.as_bytes()))));
        }
    }

    #[test]
    fn the_header_is_what_it_was() {
        let seam = Seam { goes_on: true, after_comma: true, head: 258, tail: 3 };
        let chunk =
            Chunk { output: Bytes::from_static(b"[1]"), metrics: Some(Bytes::from_static(b"{}")), seam };
        let stored = chunk.clone().encode();
        assert_eq!(stored, &b"\x01\x07\x03\0\0\0\x02\x01\0\0\x03\0\0\0[1]{}"[..]);
        assert_eq!(Chunk::decode(&stored), Some(chunk));
    }

    #[test]
    fn what_makes_no_sense_says_which_chunk_it_is() {
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
        fn any_chunk_comes_back(text: String, metrics: Option<String>, flags: (bool, bool), cut: (u32, u32)) {
            let seam = Seam { goes_on: flags.0, after_comma: flags.1, head: cut.0, tail: cut.1 };
            let output = Bytes::from(format!("\"{text}\""));
            let chunk = Chunk { output, metrics: metrics.map(Bytes::from), seam };
            prop_assert_eq!(Chunk::decode(&chunk.clone().encode()), Some(chunk));
        }

        #[test]
        fn any_bytes_are_survived(stored: Vec<u8>) {
            let _ = Chunk::decode(&stored.into());
        }
    }
}
