//! A Rust file with its comments and literals told apart from its code, and its functions found.
//!
//! This is no parser. It knows just enough of the language (nested comments, raw strings, lifetimes against
//! character literals) that a brace in a string is not taken for one in the code.

use std::ops::Range;

/// A Rust file, scanned. `code` and `comments` have as many lines and bytes as the file.
pub struct Source {
    /// The file with everything but code blanked out.
    pub code: String,
    /// The file with everything but comments blanked out.
    pub comments: String,
    /// The functions with bodies, in the order of their beginnings.
    pub functions: Vec<Function>,
    /// The lines of `#[cfg(test)]` modules, counted from 1.
    pub test_lines: Vec<Range<usize>>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// From the line of its `fn` to the one after its closing brace, counted from 1.
    pub lines: Range<usize>,
}

impl Source {
    /// Scans a file.
    pub fn parse(text: &str) -> Self {
        let (code, comments) = separate(text);
        let lines = Lines::of(&code);
        let functions = find_functions(&code, &lines);
        let test_lines = find_tests(&code, &lines);
        Self { code, comments, functions, test_lines }
    }

    /// Whether the line belongs to a `#[cfg(test)]` module.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The innermost function around a line.
    pub fn function_at(&self, line: usize) -> Option<&Function> {
        self.functions.iter().rev().find(|function| function.lines.contains(&line))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Splits a file into its code and its comments.
fn separate(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = token(bytes, at);
        kinds[at..end].fill(kind);
        at = end;
    }
    let keep = |wanted: Kind| {
        let kept = bytes.iter().zip(&kinds).map(|(&byte, &kind)| match byte {
            b'\n' => '\n',
            _ if kind == wanted && byte.is_ascii() => char::from(byte),
            _ => ' ',
        });
        kept.collect()
    };
    (keep(Kind::Code), keep(Kind::Comment))
}

/// The kind and the end of what begins at `at`.
fn token(bytes: &[u8], at: usize) -> (Kind, usize) {
    let rest = &bytes[at..];
    let in_word = at > 0 && is_word(bytes[at - 1]);
    match rest {
        [b'/', b'/', ..] => (Kind::Comment, at + find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => (Kind::Comment, at + block_comment(rest)),
        [b'"', ..] => (Kind::Literal, at + string(rest)),
        [b'r', b'"' | b'#', ..] if !in_word => raw_string(bytes, at, 1),
        [b'b' | b'c', b'r', b'"' | b'#', ..] if !in_word => raw_string(bytes, at, 2),
        [b'\'', ..] => character(rest).map_or((Kind::Code, at + 1), |length| (Kind::Literal, at + length)),
        _ => (Kind::Code, at + 1),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A raw string whose `r` (or `br`) is `prefix` bytes long; a raw identifier is code.
fn raw_string(bytes: &[u8], at: usize, prefix: usize) -> (Kind, usize) {
    let rest = &bytes[at + prefix..];
    let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return (Kind::Code, at + 1);
    }
    let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let body = hashes + 1;
    let length = find(&rest[body..], &end).map_or(rest.len(), |length| body + length + end.len());
    (Kind::Literal, at + prefix + length)
}

/// The length of a character literal; none for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        return find(&rest[3.min(rest.len())..], b"'").map(|length| length + 4);
    }
    let width = match rest.get(1)? {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where the lines of a file end.
struct Lines {
    ends: Vec<usize>,
}

impl Lines {
    fn of(text: &str) -> Self {
        Self { ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// The line of an offset, counted from 1.
    fn at(&self, offset: usize) -> usize {
        self.ends.partition_point(|&end| end < offset) + 1
    }
}

fn find_functions(code: &str, line_numbers: &Lines) -> Vec<Function> {
    let bytes = code.as_bytes();
    let starts = code.match_indices("fn ").filter(|&(at, _)| at == 0 || !is_word(bytes[at - 1]));
    let function = |(at, _): (usize, &str)| {
        let name: String = code[at + 3..].chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        let body = body_start(&bytes[at..])? + at;
        let end = matching_brace(bytes, body);
        (!name.is_empty()).then(|| Function { name, lines: line_numbers.at(at)..line_numbers.at(end) + 1 })
    };
    starts.filter_map(function).collect()
}

/// Where the brace of the body is; none for a function that is only declared.
fn body_start(signature: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in signature.iter().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.checked_sub(1)?,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The end of the block that begins at `open`.
fn matching_brace(bytes: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    bytes.len()
}

fn find_tests(code: &str, line_numbers: &Lines) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    for (at, marker) in code.match_indices("#[cfg(test)]") {
        let after = &code[at + marker.len()..];
        let item = after.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        // `mod tests;` has its lines in a file of its own.
        let Some(open) = after.find('{') else { continue };
        if item.starts_with("mod ") && after.find(';').is_none_or(|end| open < end) {
            let end = matching_brace(code.as_bytes(), at + marker.len() + open);
            ranges.push(line_numbers.at(at)..line_numbers.at(end) + 1);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = r##"let a = "{ // no"; // } yes
/* one /* two { */ { */ let b = '{'; let c = '\''; let d: &'static str = r#"} " {"#; let e = b"}";
let r#type = br"{"; let f = '\u{7b}'; let g = 'é';"##;
        let source = Source::parse(text);
        assert_eq!(source.code.matches(['{', '}']).count(), 0, "{}", source.code);
        assert!(source.code.contains("let d: &'static str ="));
        assert!(source.code.contains("let r#type ="));
        assert!(source.comments.contains("// } yes"));
        assert!(source.comments.contains("/* one /* two { */ { */"));
        assert!(!source.comments.contains("no"));
        assert_eq!(source.code.lines().count(), 3);
    }

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let text = "trait T { fn declared(&self); }\n\
                    fn one() {}\n\
                    fn two(\n    a: [u8; 3],\n) -> Option<fn(u8) -> u8>\nwhere\n    u8: Copy,\n{\n    if a { \"}\" }\n}\n";
        let found = Source::parse(text).functions;
        let found: Vec<_> =
            found.iter().map(|function| (function.name.as_str(), function.lines.clone())).collect();
        assert_eq!(found, [("one", 2..3), ("two", 3..11)]);
    }

    #[test]
    fn the_innermost_function_is_found() {
        let source = Source::parse("fn outer() {\n    fn inner() {\n        x();\n    }\n    y();\n}\n");
        assert_eq!(source.function_at(3).map(|function| function.name.as_str()), Some("inner"));
        assert_eq!(source.function_at(5).map(|function| function.name.as_str()), Some("outer"));
        assert_eq!(source.function_at(7), None);
    }

    #[test]
    fn test_modules_are_found_and_nothing_else() {
        let text = "#[cfg(test)]\nuse a::b;\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\nfn g() {}\n\
                    #[cfg(test)]\nmod other;\nfn h() {}\n";
        let source = Source::parse(text);
        assert_eq!(source.test_lines.first(), Some(&(4..8)));
        assert_eq!(source.test_lines.len(), 1);
        assert!(source.is_test_line(6) && !source.is_test_line(8));
    }
}
