//! Docs of public items that are too short to say shape, unit, range or error.

use std::path::Path;

use super::super::Finding;
use super::super::source::Source;

const WORDS_MIN: usize = 4;

/// Finds doc comments with fewer than four words before a `pub` item, a field or a variant.
pub fn find(path: &Path, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut doc: Option<(usize, String)> = None;
    for (number, (comment, code)) in (1..).zip(source.comments.lines().zip(source.code.lines())) {
        let code = code.trim();
        if let Some(text) = comment.trim_start().strip_prefix("///") {
            let (_, words) = doc.get_or_insert((number, String::new()));
            words.push_str(text);
            continue;
        }
        // Attributes and empty lines may be between a doc and its item.
        if code.is_empty() || code.starts_with('#') {
            continue;
        }
        let Some((start, text)) = doc.take() else { continue };
        let count = text.split_whitespace().count();
        if count < WORDS_MIN && is_public(code) && !source.is_test_line(number) {
            let text = format!(
                "\"{}\" is too short: say what it is, with shape, unit, range and error",
                text.trim()
            );
            findings.push(Finding::new(path, start, text));
        }
    }
    findings
}

/// Whether the item can be seen from other crates. Variants of private enums count too: this is no parser.
fn is_public(code: &str) -> bool {
    let is_variant = code.starts_with(|c: char| c.is_ascii_uppercase());
    code.starts_with("pub ") || is_variant
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        find(Path::new("a.rs"), &Source::parse(text)).into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn short_docs_of_public_items_are_found() {
        let text = "/// Which.\n#[derive(Debug)]\npub enum E {\n    /// Its id.\n    Id(u8),\n}\n";
        let findings = found(text);
        assert_eq!(findings.len(), 2);
        assert!(findings[0].starts_with("a.rs:1: \"Which.\" is too short"), "{}", findings[0]);
        assert!(findings[1].starts_with("a.rs:4: \"Its id.\" is too short"), "{}", findings[1]);
    }

    #[test]
    fn long_docs_private_items_and_tests_are_not() {
        let text = "/// The name,\n/// in lower case.\npub fn f() {}\n/// Short.\nfn g() {}\n/// Short.\npub(crate) fn h() {}\n\
                    #[cfg(test)]\nmod tests {\n    /// Short.\n    pub fn t() {}\n}\n";
        assert_eq!(found(text), [] as [&str; 0]);
    }
}
