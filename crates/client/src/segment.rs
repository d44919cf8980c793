//! Names as segments of a path.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A name as one segment of a path. Characters that would change the path are escaped, such as the `/` in a slug.
pub fn segment(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    // A segment of dots alone would be a step in the path.
    let is_step = matches!(name, "." | "..");
    if !is_step && name.bytes().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::new();
    for byte in name.bytes() {
        if is_plain(byte) && !is_step {
            escaped.push(char::from(byte));
        } else {
            // Formatting into memory cannot fail.
            let _infallible = write!(escaped, "%{byte:02X}");
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_segment() {
        for (name, expected) in [
            ("my-model_2.5", "my-model_2.5"),
            ("Org/Model", "Org%2FModel"),
            ("a?b#c%2F", "a%3Fb%23c%252F"),
            ("..", "%2E%2E"),
            ("ä b", "%C3%A4%20b"),
        ] {
            assert_eq!(segment(name), expected);
        }
    }
}
