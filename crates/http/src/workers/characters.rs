//! The characters of a JSON string's content.

/// The length in bytes of the first character of a string's content. A surrogate pair in two escapes is one character,
/// and so is half a pair.
pub(super) fn character_bytes(content: &[u8]) -> usize {
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

/// Whether the content starts with an escape of a surrogate of the kind that begins at `base`.
fn surrogate(content: &[u8], base: u16) -> bool {
    let digits = content.strip_prefix(b"\\u").and_then(|rest| rest.get(..4));
    let number = digits
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .and_then(|digits| u16::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| number & 0xFC00 == base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_character_has_its_length() {
        for (content, expected) in [
            ("ab", 1),
            ("äb", 2),
            ("\u{2028}b", 3),
            ("🦜b", 4),
            (r"\nb", 2),
            (r#"\"b"#, 2),
            (r"\\u0041", 2),
            (r"\u0041b", 6),
            (r"\ud83d\ude00b", 12),
            (r"\ud83d\ud83d\ude00", 6),
            (r"\ude00\ud83dx", 6),
            (r"\ud83dx", 6),
            (r"\u1", 3),
        ] {
            assert_eq!(character_bytes(content.as_bytes()), expected, "{content}");
        }
    }
}
