//! Names of functions and tests: sentences in them follow the same rules as prose.

use std::path::Path;

use super::super::Finding;
use super::phrases;

/// Finds phrases in the names of functions of a Rust or Python file. `code` is the file without comments and texts, as far
/// as the language is parsed.
pub fn find(path: &Path, code: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let Some(name) = function_name(line) else { continue };
        let found = phrases::find(path, &name.replace('_', " "));
        findings.extend(
            found
                .into_iter()
                .map(|finding| Finding::new(path, number, format!("`{name}`: {}", finding.text))),
        );
    }
    findings
}

/// The name of the function that a line declares.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| !matches!(*word, "fn" | "def"));
    let name = words.nth(1)?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(code: &str) -> Vec<usize> {
        find(Path::new("a.rs"), code).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn phrases_are_found_as_whole_words_of_a_name() {
        assert_eq!(lines("fn a() {}\n    pub async fn it_delays_nobody(x: u8) {\n"), [2]);
        assert_eq!(lines("def test_a_client_hangs_up(server):\n    nobody = 1\n"), [1]);
        assert_eq!(lines("fn nobodys_job() {}\nlet fn_nobody = 1;\n"), [] as [usize; 0]);
    }
}
