//! Finds the ends of values in JSON text without parsing them. For invalid JSON the result is some index in the text.

use super::python_json::string_end;

/// The index of the first byte from `at` on that is not white space.
pub(super) fn skip_space(text: &[u8], at: usize) -> usize {
    let is_space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    at + text.get(at..).map_or(0, |rest| rest.iter().take_while(is_space).count())
}

/// The end of the value that begins at `start`.
pub(super) fn value_end(text: &[u8], start: usize) -> usize {
    match text.get(start) {
        Some(b'"') => string_end(text, start),
        Some(b'[' | b'{') => container_end(text, start),
        _ => word_end(text, start),
    }
}

/// The end of a number or a word.
pub(super) fn word_end(text: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b':' | b']' | b'}' | b'[' | b'{' | b'"') || *byte <= b' ';
    let rest = text.get(start..).unwrap_or_default();
    start + rest.iter().position(is_end).unwrap_or(rest.len())
}

fn container_end(text: &[u8], start: usize) -> usize {
    let (mut at, mut open) = (start, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = string_end(text, at);
                continue;
            }
            b'[' | b'{' => open += 1,
            b']' | b'}' => open -= 1,
            _ => {}
        }
        at += 1;
        if open == 0 {
            return at;
        }
    }
    text.len()
}
