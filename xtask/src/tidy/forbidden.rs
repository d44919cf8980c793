//! Things that are fine while one works and must not stay.

use std::path::Path;

use super::source::Source;
use super::{File, Finding};

/// What may not be in the code of a Rust file. Written in halves: this file is checked too.
const IN_CODE: [(&str, &str); 6] = [
    (concat!("to", "do!("), "finish it"),
    (concat!("unimple", "mented!("), "finish it"),
    (concat!("db", "g!("), "remove it"),
    (concat!("#[ig", "nore"), "make the test run everywhere or remove it"),
    (concat!("#[al", "low("), "use #[expect(.., reason = \"..\")]"),
    (concat!("#![al", "low("), "use #![expect(.., reason = \"..\")]"),
];

/// What may not be in any file.
const IN_TEXT: [(&str, &str); 2] = [
    (concat!("TO", "DO"), "a note to do something later: do it, or write it down outside the tree"),
    (concat!("FIX", "ME"), "a note to do something later: do it, or write it down outside the tree"),
];

/// Folders of the machines that the project happens to be built on.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp", "/wt")];

/// Hosts that packages come from: naming one ties the build to a network.
const REGISTRY_HOSTS: [&str; 5] = [
    concat!("index.crat", "es.io"),
    concat!("static.crat", "es.io"),
    concat!("files.python", "hosted.org"),
    concat!("pypi.org", "/simple"),
    concat!("registry-1.dock", "er.io"),
];

const A_TEST_SLEEPS: &str = "a test sleeps: wait for a condition with a deadline, in a function named `wait_…`, `until…` or `eventually…`";

const A_DEBUG_FIELD: &str =
    "a log field in Rust's debug form, such as `Some(0)`: log the value (`Option` is one) or use `%`";

/// Checks the code of a Rust file.
pub fn check_rust(path: &Path, source: &Source, is_test: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut lines = source.comments.lines().zip(source.code.lines());
    let documented = lines
        .find(|(comment, code)| !(comment.trim().is_empty() && code.trim().is_empty()))
        .is_some_and(|(comment, _)| comment.starts_with("//!"));
    if !documented {
        findings.push(Finding::new(path, 1, "the file does not begin with `//!`: say what it is for"));
    }
    // With a paused clock a sleep takes no time and orders what happens: it is how such a test says "later".
    let is_paused = source.code.contains("start_paused") || source.code.contains("time::pause(");
    for (number, code) in (1..).zip(source.code.lines()) {
        for (needle, advice) in IN_CODE {
            if code.contains(needle) {
                findings.push(Finding::new(path, number, format!("`{needle}` is left over: {advice}")));
            }
        }
        if !is_test && !source.is_test_line(number) && logs_debug_form(source, number, code) {
            findings.push(Finding::new(path, number, A_DEBUG_FIELD));
        }
        let sleeps = code.contains("thread::sleep(") || (code.contains("time::sleep(") && !is_paused);
        let tested = is_test || source.is_test_line(number);
        if sleeps && tested && !waits(source, number) {
            findings.push(Finding::new(path, number, A_TEST_SLEEPS));
        }
    }
    findings
}

/// Whether the line belongs to a log macro and has a field with the sigil `?`.
fn logs_debug_form(source: &Source, number: usize, code: &str) -> bool {
    const LEVELS: [&str; 6] = ["trace!(", "debug!(", "info!(", "warn!(", "error!(", "event!("];
    let has_sigil =
        ["(?", ", ?", "= ?"].iter().any(|sigil| code.contains(sigil)) || code.trim_start().starts_with('?');
    // A macro call of the project's width has at most a handful of lines.
    let starts_here =
        |line: &str| line.contains("tracing::") && LEVELS.iter().any(|level| line.contains(level));
    let lines: Vec<&str> = source.code.lines().skip(number.saturating_sub(6)).take(6.min(number)).collect();
    let Some(start) = lines.iter().rposition(|line| starts_here(line)) else { return false };
    let is_open = !lines[start..lines.len() - 1].iter().any(|line| line.trim_end().ends_with(';'));
    has_sigil && is_open
}

/// Whether the line waits for something: it is in a loop, or in a function whose name says so.
fn waits(source: &Source, line: usize) -> bool {
    source.is_in_loop(line) || source.function_at(line).is_some_and(|function| says_so(&function.name))
}

fn says_so(function: &str) -> bool {
    ["wait_", "until", "eventually"].iter().any(|beginning| function.starts_with(beginning))
}

/// Checks any text file.
pub fn check_text(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        for (needle, what) in IN_TEXT {
            if is_word(line, needle) {
                findings.push(Finding::new(&file.path, number, format!("`{needle}`: {what}")));
            }
        }
        for needle in MACHINE_PATHS {
            if line.match_indices(needle).any(|(at, _)| begins_path(line, at)) {
                let text = format!(
                    "`{needle}` is a folder of one machine: derive the path or take it as an argument"
                );
                findings.push(Finding::new(&file.path, number, text));
            }
        }
        for needle in REGISTRY_HOSTS {
            if line.contains(needle) {
                let text = format!(
                    "`{needle}` is a package registry: leave the choice to the machine's own settings"
                );
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    if is_python_test(&file.path) {
        findings.extend(check_python_test(file));
    }
    findings
}

fn is_python_test(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    path.extension().is_some_and(|extension| extension == "py") && name.starts_with("test_")
}

fn check_python_test(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut function = "";
    for (number, line) in (1..).zip(file.text.lines()) {
        if let Some(rest) = line.trim_start().trim_start_matches("async ").strip_prefix("def ") {
            function = rest.split('(').next().unwrap_or_default();
        }
        let sleeps = line.contains("time.sleep(") || line.contains("asyncio.sleep(");
        if sleeps && function.starts_with("test_") {
            findings.push(Finding::new(&file.path, number, A_TEST_SLEEPS));
        }
    }
    findings
}

fn is_word(line: &str, word: &str) -> bool {
    let bounded = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    line.match_indices(word).any(|(at, _)| {
        bounded(line[..at].chars().next_back()) && bounded(line[at + word.len()..].chars().next())
    })
}

/// Whether a path begins here, rather than a slash in the middle of another one.
fn begins_path(line: &str, at: usize) -> bool {
    line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"_-./{}$~>*".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rust(text: &str) -> Vec<(usize, String)> {
        let findings = check_rust(Path::new("src/a.rs"), &Source::parse(text), false);
        findings.into_iter().map(|finding| (finding.line, finding.text)).collect()
    }

    fn text(path: &str, text: &str) -> Vec<usize> {
        let file = File { path: path.into(), text: text.to_owned() };
        check_text(&file).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unfinished_code_is_found_but_not_in_strings_and_comments() {
        for (needle, _) in IN_CODE {
            let found = rust(&format!("//! A.\n{needle}\n"));
            assert_eq!(found.len(), 1, "{needle}");
            assert_eq!(found[0].0, 2);
            assert_eq!(rust(&format!("//! A.\n// {needle}\nlet a = \"{needle}\";\n")), []);
        }
    }

    #[test]
    fn a_log_field_in_debug_form_is_found() {
        let found = |line: &str| rust(&format!("//! A.\nfn a() {{\n{line}\n}}\n")).len();
        assert_eq!(found("tracing::info!(?code, \"a\");"), 1);
        assert_eq!(found("tracing::info!(id, ?code, \"a\");"), 1);
        assert_eq!(found("tracing::info!(code = ?exit.code, \"a\");"), 1);
        assert_eq!(found("tracing::info!(\n    id,\n    ?code,\n    \"a\",\n);"), 1);
        assert_eq!(found("tracing::info!(%id, code, \"a?\");"), 0);
        assert_eq!(found("tracing::info!(id, \"a\");\nlet a = b()?;"), 0);
    }

    #[test]
    fn every_file_says_what_it_is_for() {
        assert_eq!(rust("\n//! A.\n"), []);
        assert_eq!(rust("use a;\n//! A.\n").len(), 1);
        assert_eq!(rust("// A.\n").len(), 1);
        assert_eq!(rust("").len(), 1);
    }

    #[test]
    fn a_sleep_in_a_test_is_found_unless_it_waits_for_something() {
        let test = |name: &str| {
            format!(
                "//! A.\n#[cfg(test)]\nmod tests {{\n    fn {name}() {{\n        thread::sleep(s);\n    }}\n}}\n"
            )
        };
        assert_eq!(rust(&test("a_job_ends")).len(), 1);
        assert_eq!(rust(&test("wait_until")), []);
        let paused = "//! A.\n#[cfg(test)]\nmod tests {\n    #[tokio::test(start_paused = true)]\n    \
                      async fn a() {\n        tokio::time::sleep(s).await;\n    }\n}\n";
        assert_eq!(rust(paused), []);
        assert_eq!(rust("//! A.\nfn poll() {\n    tokio::time::sleep(s).await;\n}\n"), []);
        let py = "def test_a():\n    time.sleep(1)\n\nasync def wait_for(x):\n    await asyncio.sleep(1)\n";
        assert_eq!(text("e2e/test_a.py", py), [2]);
        assert_eq!(text("e2e/handler.py", py), [] as [usize; 0]);
    }

    #[test]
    fn notes_to_oneself_are_found_as_words() {
        for (needle, _) in IN_TEXT {
            assert_eq!(text("a.md", &format!("x\n{needle}: y\n")), [2]);
            assert_eq!(text("a.md", &format!("{needle}S my{needle}\n")), [] as [usize; 0]);
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for needle in MACHINE_PATHS {
            assert_eq!(text("a.toml", &format!("a = \"{needle}x\"\n")), [1], "{needle}");
            assert_eq!(text("a.toml", &format!("a = \"net{needle}x\"\n")), [] as [usize; 0], "{needle}");
            assert_eq!(text("a.toml", &format!("a = \"{{dir}}{needle}x\"\n")), [] as [usize; 0], "{needle}");
        }
        for needle in REGISTRY_HOSTS {
            assert_eq!(text("a.toml", &format!("a = \"https://{needle}/x\"\n")), [1], "{needle}");
        }
    }
}
