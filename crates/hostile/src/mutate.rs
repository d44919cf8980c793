//! A strategy that generates valid documents with a few mutations.

use proptest::prelude::*;
use proptest::sample::Index;

/// Byte sequences that make JSON invalid or change its structure.
pub const JSON_TOKENS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"null",
    b"true",
    b"NaN",
    b"-Infinity",
    b"1e400",
    b"-",
    b"0",
    b"\0",
    b"\n",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"//",
    b"\"id\":1,",
    b"[[[[[[[[",
    b"]]]]]]]]",
    b"99999999999999999999",
];

/// One change of a document. Positions are relative to its length; lengths are in bytes, limited to the document's end.
#[derive(Clone, Debug)]
enum Mutation {
    /// Flips one bit of a byte.
    Flip { at: Index, bit: u8 },
    /// Replaces one byte by another.
    Set { at: Index, byte: u8 },
    /// Inserts bytes before a position.
    Insert { at: Index, bytes: Vec<u8> },
    /// Deletes bytes from a position on.
    Delete { at: Index, length: usize },
    /// Inserts a copy of bytes of the document.
    Repeat { from: Index, to: Index, length: usize },
    /// Truncates the document at a position.
    Cut { at: Index },
}

/// Generates documents of `valid` with up to five mutations; some stay unchanged. Insertions are one of `tokens` or random
/// bytes.
pub fn mutated(
    valid: impl Strategy<Value = impl Into<Vec<u8>> + std::fmt::Debug>,
    tokens: &'static [&'static [u8]],
) -> impl Strategy<Value = Vec<u8>> {
    (valid, prop::collection::vec(mutation(tokens), 0..=5)).prop_map(|(document, changes)| {
        let mut document = document.into();
        for change in &changes {
            change.apply(&mut document);
        }
        document
    })
}

fn mutation(tokens: &'static [&'static [u8]]) -> impl Strategy<Value = Mutation> {
    let token = prop::sample::select(if tokens.is_empty() { vec![&b""[..]] } else { tokens.to_vec() });
    let inserted = prop_oneof![
        2 => token.prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    let at = any::<Index>;
    prop_oneof![
        (at(), 0..8_u8).prop_map(|(at, bit)| Mutation::Flip { at, bit }),
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set { at, byte }),
        (at(), inserted).prop_map(|(at, bytes)| Mutation::Insert { at, bytes }),
        (at(), 1..16_usize).prop_map(|(at, length)| Mutation::Delete { at, length }),
        (at(), at(), 1..32_usize).prop_map(|(from, to, length)| Mutation::Repeat { from, to, length }),
        at().prop_map(|at| Mutation::Cut { at }),
    ]
}

impl Mutation {
    fn apply(&self, document: &mut Vec<u8>) {
        let length = document.len();
        let span = |at: &Index, span_max: usize| {
            let start = at.index(length + 1);
            start..(start + span_max).min(length)
        };
        match self {
            Self::Flip { at, bit } if length > 0 => document[at.index(length)] ^= 1 << bit,
            Self::Set { at, byte } if length > 0 => document[at.index(length)] = *byte,
            Self::Flip { .. } | Self::Set { .. } => {}
            Self::Insert { at, bytes } => {
                let at = at.index(length + 1);
                document.splice(at..at, bytes.iter().copied());
            }
            Self::Delete { at, length } => drop(document.drain(span(at, *length))),
            Self::Repeat { from, to, length: span_max } => {
                let repeated = document[span(from, *span_max)].to_vec();
                let to = to.index(length + 1);
                document.splice(to..to, repeated);
            }
            Self::Cut { at } => document.truncate(at.index(length + 1)),
        }
    }
}
