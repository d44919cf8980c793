//! JSON as Python writes it, with `NaN`, `Infinity` and `-Infinity` as numbers.

use serde::Deserialize;

use bytes::Bytes;

/// What Python's encoder writes for floats that JSON does not have. Each becomes `null`.
const FOREIGN_NUMBERS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Reads `body` with `read`. If that fails and the body has such numbers, reads it again with `null` in their place;
/// every other byte stays as it is.
pub(crate) fn read_json<T>(
    body: &Bytes,
    read: impl Fn(&Bytes) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    read(body).or_else(|error| match without_foreign_numbers(body) {
        Some(repaired) => read(&repaired.into()),
        None => Err(error),
    })
}

/// The text with `null` for every such number outside its strings; `None` if there is none.
fn without_foreign_numbers(text: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Option<Vec<u8>> = None;
    let mut copied_until = 0;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at),
            b'N' | b'I' | b'-' => match FOREIGN_NUMBERS.iter().find(|word| text[at..].starts_with(word)) {
                Some(word) => {
                    let repaired = repaired.get_or_insert_with(|| Vec::with_capacity(text.len() + 16));
                    repaired.extend_from_slice(&text[copied_until..at]);
                    repaired.extend_from_slice(b"null");
                    at += word.len();
                    copied_until = at;
                }
                None => at += 1,
            },
            _ => at += 1,
        }
    }
    if let Some(repaired) = &mut repaired {
        repaired.extend_from_slice(&text[copied_until..]);
    }
    repaired
}

/// The index after the string that opens at `start`, or the end of the text if the string is not closed.
pub(super) fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// The text of a JSON string; the raw text between the quotes if it has something that is not Unicode (half a surrogate
/// pair).
pub(crate) fn plain_text(json_string: &str) -> String {
    let mut reader = serde_json::Deserializer::from_str(json_string);
    String::deserialize(&mut reader).unwrap_or_else(|_| json_string.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn repaired(text: &str) -> Option<String> {
        without_foreign_numbers(text.as_bytes()).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn foreign_numbers_become_null_and_nothing_else_changes() {
        for (text, expected) in [
            (r#"{"a": NaN}"#, r#"{"a": null}"#),
            (r"[Infinity,-Infinity , NaN]", r"[null,null , null]"),
            (r"[1.0, 1e400, NaN, 12345678901234567890]", r"[1.0, 1e400, null, 12345678901234567890]"),
            (r#"["NaN", NaN, "a\"NaN\\", Infinity]"#, r#"["NaN", null, "a\"NaN\\", null]"#),
            (r#"{"NaN": "-Infinity", "x": -Infinity}"#, r#"{"NaN": "-Infinity", "x": null}"#),
            ("NaN", "null"),
        ] {
            assert_eq!(repaired(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn texts_without_foreign_numbers_are_left_alone() {
        for text in [r#"{"a": "NaN"}"#, "[-1, -0.5]", "Nan", "\"unclosed NaN", "\"ends in \\", "", "-", "I"] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_shown_as_it_was_written() {
        assert_eq!(plain_text(r#""a\nb""#), "a\nb");
        assert_eq!(plain_text(r#""bad \udc80 name""#), r"bad \udc80 name");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(text: Vec<u8>) {
            let _ = without_foreign_numbers(&text);
        }

        #[test]
        fn strict_json_is_never_touched(numbers: Vec<f64>, words: Vec<String>) {
            let text = serde_json::to_vec(&(numbers, words)).unwrap();
            prop_assert_eq!(without_foreign_numbers(&text), None);
        }
    }
}
