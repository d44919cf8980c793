//! Tells the comments and literals of a Rust file from its code.
//!
//! This is no parser. It knows just enough of the language (nested comments, raw strings, lifetimes against
//! character literals) that a brace in a string is not taken for one in the code.

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Splits a file into its code and its comments. Both have as many lines and bytes as the file; what belongs to
/// neither, the literals, is blank in both.
pub fn separate(text: &str) -> (String, String) {
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

/// Whether the byte can be part of a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = r##"let a = "{ // no"; // } yes
/* one /* two { */ { */ let b = '{'; let c = '\''; let d: &'static str = r#"} " {"#; let e = b"}";
let r#type = br"{"; let f = '\u{7b}'; let g = 'é';"##;
        let (code, comments) = separate(text);
        assert_eq!(code.matches(['{', '}']).count(), 0, "{code}");
        assert!(code.contains("let d: &'static str ="));
        assert!(code.contains("let r#type ="));
        assert!(comments.contains("// } yes"));
        assert!(comments.contains("/* one /* two { */ { */"));
        assert!(!comments.contains("no"));
        assert_eq!(code.lines().count(), 3);
    }

    #[test]
    fn what_does_not_end_reaches_to_the_end() {
        for text in ["\"open", "/* open", "r#\"open", "'\\", "'", "b\"", "r#", "// open"] {
            assert_eq!(separate(text).0.len(), text.len(), "{text}");
        }
    }
}
