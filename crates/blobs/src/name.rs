//! The check that a blob's name is safe as a path.

use crate::BlobError;

/// Limit of the length of a name in bytes: the limit of file systems for one part of a path.
const NAME_BYTES_MAX: usize = 255;

/// Returns the name if its path stays inside the directory on every file system.
///
/// # Errors
/// [`BlobError::Name`] with the name.
pub fn check_name(name: &str) -> Result<&str, BlobError> {
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
            assert_eq!(check_name(name).unwrap(), name);
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
            assert!(matches!(check_name(name), Err(BlobError::Name(_))), "{name:?}");
        }
    }
}
