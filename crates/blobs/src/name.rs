//! Which names are safe to become paths.

use crate::BlobError;

/// The longest name in bytes: what file systems take for one part.
const NAME_BYTES_MAX: usize = 255;

/// The name, if it stays inside the folder on every file system.
pub(crate) fn checked(name: &str) -> Result<&str, BlobError> {
    let safe = name.len() <= NAME_BYTES_MAX && name.split('/').all(part_is_safe);
    if safe { Ok(name) } else { Err(BlobError::Name(name.chars().take(NAME_BYTES_MAX).collect())) }
}

fn part_is_safe(part: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_payloads_are_accepted() {
        for name in ["7/12.input", "7/sync-0190-ab.output.3", "a", "a/b/c", "wk-1.a:b_C"] {
            assert_eq!(checked(name).unwrap(), name);
        }
    }

    #[test]
    fn names_that_leave_the_folder_or_hide_are_refused() {
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "a/..",
            "a/../b",
            "a//b",
            "a/",
            "/a",
            ".tmp/a",
            "a\\b",
            "a b",
            "a\0",
            "é",
            &long,
        ] {
            assert!(matches!(checked(name), Err(BlobError::Name(_))), "{name:?}");
        }
    }
}
