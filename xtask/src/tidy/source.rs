//! A Rust file with its functions and its tests found.

use std::ops::Range;

use super::tokens::{is_word, separate};

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
    /// The `#[cfg(test)]` modules that are in files of their own.
    pub test_modules: Vec<String>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// The identifier after `fn`.
    pub name: String,
    /// From the line of its `fn` to the one after its closing brace, counted from 1.
    pub lines: Range<usize>,
}

impl Source {
    /// Scans the text of a Rust file.
    pub fn parse(text: &str) -> Self {
        let (code, comments) = separate(text);
        let lines = Lines::of(&code);
        let functions = find_functions(&code, &lines);
        let (test_lines, test_modules) = find_tests(&code, &lines);
        Self { code, comments, functions, test_lines, test_modules }
    }

    /// Whether the line belongs to a `#[cfg(test)]` module.
    pub fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// Whether the innermost block around the beginning of a line is the body of a loop.
    pub fn is_in_loop(&self, line: usize) -> bool {
        let start: usize = self.code.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let before = &self.code.as_bytes()[..start];
        let mut depth = 0_usize;
        for (at, byte) in before.iter().enumerate().rev() {
            match byte {
                b'}' => depth += 1,
                b'{' if depth == 0 => {
                    let mut words = head_of_block(&self.code[..at]).split(|c: char| !c.is_alphanumeric());
                    return words.any(|word| word == "loop" || word == "while");
                }
                b'{' => depth -= 1,
                _ => {}
            }
        }
        false
    }

    /// The innermost function around a line.
    pub fn function_at(&self, line: usize) -> Option<&Function> {
        self.functions.iter().rev().find(|function| function.lines.contains(&line))
    }
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

/// What stands before the brace of a block, back to the end of the statement or block before it.
fn head_of_block(code: &str) -> &str {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            b';' | b'{' | b'}' if depth == 0 => return &code[at + 1..],
            _ => {}
        }
    }
    code
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

/// The lines of the modules that are only there for tests, and the names of those that are elsewhere.
fn find_tests(code: &str, line_numbers: &Lines) -> (Vec<Range<usize>>, Vec<String>) {
    let (mut ranges, mut elsewhere) = (Vec::new(), Vec::new());
    for (at, marker) in code.match_indices("#[cfg(test)]") {
        let after = at + marker.len();
        let item = code[after..].trim_start();
        let Some(name) = item.trim_start_matches("pub(crate) ").strip_prefix("mod ") else { continue };
        let name: String = name.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        match code[after..].find(['{', ';']).map(|offset| after + offset) {
            Some(open) if code[open..].starts_with('{') => {
                let end = matching_brace(code.as_bytes(), open);
                ranges.push(line_numbers.at(at)..line_numbers.at(end) + 1);
            }
            _ => elsewhere.push(name),
        }
    }
    (ranges, elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_line_in_a_loop_is_told_from_one_after_it() {
        let source = Source::parse(
            "fn f() {\n    while a.b(|c| { c }) != 2 {\n        x();\n        if y {\n            z();\n        }\n        w();\n    }\n    v();\n}\n",
        );
        let found: Vec<usize> = (1..=10).filter(|&line| source.is_in_loop(line)).collect();
        assert_eq!(found, [3, 4, 7, 8]);
    }

    #[test]
    fn test_modules_are_found_and_nothing_else() {
        let text = "#[cfg(test)]\nuse a::b;\nfn f() {}\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\nfn g() {}\n\
                    #[cfg(test)]\nmod other;\nfn h() {}\n";
        let source = Source::parse(text);
        assert_eq!(source.test_lines.first(), Some(&(4..8)));
        assert_eq!(source.test_lines.len(), 1);
        assert_eq!(source.test_modules, ["other"]);
        assert!(source.is_test_line(6) && !source.is_test_line(8));
    }
}
