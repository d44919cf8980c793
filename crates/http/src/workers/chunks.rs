//! Stream chunks longer than the wire allows are split: a string on character boundaries, an array on elements.

use bytes::Bytes;
use serde_json::value::RawValue;

/// A chunk that is too long and cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a stream chunk of {bytes} bytes is over the limit of {limit} and only strings and arrays of smaller values \
     can be split; yield smaller pieces"
)]
pub(super) struct ChunkTooLong {
    bytes: usize,
    limit: usize,
}

/// The chunk in pieces of at most `limit` bytes each; the chunk itself if it is short enough.
///
/// `chunk` must be JSON text. The pieces of a string are strings whose contents, joined, are the content of the
/// whole; the pieces of an array are arrays whose elements, in order, are the elements of the whole.
pub(super) fn split(chunk: Bytes, limit: usize) -> Result<Vec<Bytes>, ChunkTooLong> {
    if chunk.len() <= limit {
        return Ok(vec![chunk]);
    }
    let pieces = match chunk.first() {
        Some(b'"') => split_string(&chunk, limit),
        Some(b'[') => split_array(&chunk, limit),
        _ => None,
    };
    pieces.ok_or(ChunkTooLong { bytes: chunk.len(), limit })
}

fn split_string(chunk: &[u8], limit: usize) -> Option<Vec<Bytes>> {
    let content = chunk.get(1..chunk.len() - 1)?;
    let room = limit.checked_sub(2)?;
    let mut pieces = Vec::with_capacity(chunk.len() / room.max(1) + 1);
    let mut start = 0;
    let mut at = 0;
    while at < content.len() {
        let character = character_bytes(&content[at..]);
        if character > room {
            return None;
        }
        if at + character - start > room {
            pieces.push(quoted(&content[start..at]));
            start = at;
        }
        at += character;
    }
    pieces.push(quoted(&content[start..]));
    Some(pieces)
}

fn quoted(content: &[u8]) -> Bytes {
    let mut piece = Vec::with_capacity(content.len() + 2);
    piece.push(b'"');
    piece.extend_from_slice(content);
    piece.push(b'"');
    piece.into()
}

/// The length of the first character of a JSON string's content, as it is written there. A surrogate pair in
/// two escapes is one character; so is half a pair on its own.
fn character_bytes(content: &[u8]) -> usize {
    let length = match content {
        [b'\\', b'u', ..] => match (surrogate(content, 0xD800), content.get(6..)) {
            (true, Some(rest)) if surrogate(rest, 0xDC00) => 12,
            _ => 6,
        },
        [b'\\', ..] => 2,
        [first, ..] if *first >= 0xF0 => 4,
        [first, ..] if *first >= 0xE0 => 3,
        [first, ..] if *first >= 0xC0 => 2,
        _ => 1,
    };
    length.min(content.len())
}

/// Whether the content starts with an escape of the kind of surrogate that begins at `base`.
fn surrogate(content: &[u8], base: u16) -> bool {
    let digits = content.strip_prefix(b"\\u").and_then(|rest| rest.get(..4));
    let number = digits
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u16::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| number & 0xFC00 == base)
}

fn split_array(chunk: &[u8], limit: usize) -> Option<Vec<Bytes>> {
    // Brackets on both sides.
    let room = limit.checked_sub(2)?;
    let elements: Vec<&RawValue> = serde_json::from_slice(chunk).ok()?;
    let mut pieces = Vec::with_capacity(chunk.len() / limit.max(1) + 1);
    let mut piece = vec![b'['];
    for element in elements {
        let element = element.get().as_bytes();
        if element.len() > room {
            return None;
        }
        // A comma before it and a bracket after it.
        if piece.len() > 1 && piece.len() + 1 + element.len() + 1 > limit {
            piece.push(b']');
            pieces.push(std::mem::replace(&mut piece, vec![b'[']).into());
        }
        if piece.len() > 1 {
            piece.push(b',');
        }
        piece.extend_from_slice(element);
    }
    piece.push(b']');
    pieces.push(piece.into());
    Some(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(chunk: &str, limit: usize) -> Vec<String> {
        let pieces = split(Bytes::copy_from_slice(chunk.as_bytes()), limit).unwrap();
        pieces.iter().map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
    }

    #[test]
    fn a_short_chunk_is_one_piece_untouched() {
        assert_eq!(pieces("{ \"a\" : 1.0 }", 13), ["{ \"a\" : 1.0 }"]);
        assert_eq!(pieces("null", 4), ["null"]);
    }

    #[test]
    fn a_string_is_split_between_characters() {
        assert_eq!(pieces(r#""abcdef""#, 5), [r#""abc""#, r#""def""#]);
        assert_eq!(pieces(r#""ab\ncd""#, 5), [r#""ab""#, r#""\nc""#, r#""d""#]);
        assert_eq!(pieces(r#""äöü""#, 6), [r#""äö""#, r#""ü""#]);
        assert_eq!(pieces(r#""\\\\\\""#, 5), [r#""\\""#, r#""\\""#, r#""\\""#]);
    }

    #[test]
    fn a_surrogate_pair_stays_together_and_half_a_pair_is_survived() {
        assert_eq!(pieces(r#""a\ud83d\ude00b""#, 14), [r#""a""#, r#""\ud83d\ude00""#, r#""b""#]);
        assert_eq!(pieces(r#""\ud83d\ud83d\ude00""#, 14), [r#""\ud83d""#, r#""\ud83d\ude00""#]);
        assert_eq!(pieces(r#""\ude00\ud83dx""#, 9), [r#""\ude00""#, r#""\ud83dx""#]);
    }

    #[test]
    fn an_array_is_split_between_elements_and_keeps_their_bytes() {
        assert_eq!(pieces(r#"[ 1.0, {"a": [2]} , "x,]" ]"#, 14), [r"[1.0]", r#"[{"a": [2]}]"#, r#"["x,]"]"#]);
        assert_eq!(pieces("[1,2,3,4,5]", 5), ["[1,2]", "[3,4]", "[5]"]);
    }

    #[test]
    fn what_cannot_be_split_is_refused_with_its_size() {
        for chunk in [r#"{"a": "bcdefgh"}"#, "[1,\"abcdefghijk\"]", "1234567890123", "[[1,2,3,4,5,6,7]]"] {
            let refusal = split(Bytes::copy_from_slice(chunk.as_bytes()), 10).unwrap_err();
            assert_eq!(refusal, ChunkTooLong { bytes: chunk.len(), limit: 10 });
            assert!(refusal.to_string().contains(&format!("{} bytes", chunk.len())));
        }
    }

    #[test]
    fn no_piece_is_over_a_limit_that_one_character_does_not_fit() {
        for (chunk, limit) in [("\"a\u{800}\"", 3), ("\"a\u{800}\"", 4), ("[]", 1), ("[]", 0)] {
            split(Bytes::copy_from_slice(chunk.as_bytes()), limit).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn pieces_of_any_string_are_strings_that_join_to_it(text: String, ascii: bool, limit in 14_usize..64) {
            let plain = serde_json::to_string(&text).unwrap();
            let escaped = plain.encode_utf16().fold(String::new(), |text, unit| match u8::try_from(unit) {
                Ok(ascii) if ascii.is_ascii() => text + char::from(ascii).encode_utf8(&mut [0; 4]),
                _ => text + &format!("\\u{unit:04x}"),
            });
            let whole = if ascii { escaped } else { plain };
            let mut joined = String::new();
            for piece in pieces(&whole, limit) {
                prop_assert!(piece.len() <= limit);
                joined += &serde_json::from_str::<String>(&piece).unwrap();
            }
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn pieces_of_any_array_are_arrays_that_join_to_it(numbers: Vec<u64>, limit in 22_usize..64) {
            let whole = serde_json::to_string(&numbers).unwrap();
            let mut joined = Vec::new();
            for piece in pieces(&whole, limit) {
                prop_assert!(piece.len() <= limit);
                joined.extend(serde_json::from_str::<Vec<u64>>(&piece).unwrap());
            }
            prop_assert_eq!(joined, numbers);
        }

        #[test]
        fn any_bytes_and_any_limit_are_survived(chunk: Vec<u8>, limit in 0_usize..40) {
            let _ = split(chunk.into(), limit);
        }
    }
}
