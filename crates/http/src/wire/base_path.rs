//! The base path: what a proxy in front of the server puts before every path.

/// Longest base path, in bytes.
const BYTES_MAX: usize = 200;

/// Whether a text can be a base path: empty, or segments with a slash before each, of characters that need no escape.
pub fn is_base_path(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let is_segment = |segment: &str| {
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(is_plain)
    };
    match text.strip_prefix('/') {
        None => text.is_empty(),
        Some(rest) => text.len() <= BYTES_MAX && rest.split('/').all(is_segment),
    }
}

/// The path without the base path; `None` if it does not begin with it. The path of the base itself is `/`.
pub(crate) fn without_base<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    match path.strip_prefix(base)? {
        "" => Some("/"),
        rest if rest.starts_with('/') => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_paths_are_told_from_other_texts() {
        for good in ["", "/longshore", "/a/b-c_d.e~f/1"] {
            assert!(is_base_path(good), "{good}");
        }
        let long = format!("/{}", "a".repeat(BYTES_MAX));
        for bad in
            ["/", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/a b", "/a%20b", "/\"", "/é", "/a?b", &long]
        {
            assert!(!is_base_path(bad), "{bad}");
        }
    }

    #[test]
    fn only_whole_segments_are_taken_off() {
        assert_eq!(without_base("/a/v1/x", "/a"), Some("/v1/x"));
        assert_eq!(without_base("/a", "/a"), Some("/"));
        assert_eq!(without_base("/ab/v1", "/a"), None);
        assert_eq!(without_base("/v1", "/a"), None);
    }
}
