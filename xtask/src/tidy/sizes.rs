//! Limits on the lines of files and functions.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Finding;
use super::source::Source;

const FILE_LINES_MEDIAN_MAX: usize = 150;
const FILE_LINES_P90_MAX: usize = 400;
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// How long the files are, tests not counted.
#[derive(Default)]
pub struct Sizes {
    files: Vec<(usize, PathBuf)>,
    functions: usize,
    longest_function: usize,
}

/// Checks a file and adds it to the measured ones. Files of tests are not measured, their functions are.
pub fn check(path: &Path, source: &Source, is_test: bool, sizes: &mut Sizes) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in &source.functions {
        let lines = function.lines.len();
        sizes.functions += 1;
        sizes.longest_function = sizes.longest_function.max(lines);
        if lines > FUNCTION_LINES_MAX {
            let text = format!(
                "`{}` has {lines} lines, more than {FUNCTION_LINES_MAX}: take a step out and give it a name",
                function.name
            );
            findings.push(Finding::new(path, function.lines.start, text));
        }
    }
    if is_test {
        return findings;
    }
    let tests: usize = source.test_lines.iter().map(ExactSizeIterator::len).sum();
    let lines = source.code.lines().count() - tests;
    if lines > FILE_LINES_MAX {
        let text =
            format!("{lines} lines, more than {FILE_LINES_MAX}: give each responsibility its own file");
        findings.push(Finding::new(path, 0, text));
    }
    sizes.files.push((lines, path.to_path_buf()));
    findings
}

impl Sizes {
    /// Checks the files together.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let bars = [(50, FILE_LINES_MEDIAN_MAX, "half"), (90, FILE_LINES_P90_MAX, "90 %")];
        for (percent, max, share) in bars {
            let (lines, path) = self.percentile(percent);
            if lines > max {
                let text = format!(
                    "{share} of the files may have at most {max} lines; the line falls at {lines} here"
                );
                findings.push(Finding::new(&path, 0, text));
            }
        }
        findings
    }

    fn percentile(&self, percent: usize) -> (usize, PathBuf) {
        let mut files = self.files.clone();
        files.sort();
        let rank = (files.len() * percent).div_ceil(100).saturating_sub(1);
        files.get(rank).cloned().unwrap_or_default()
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (longest, path) = self.percentile(100);
        write!(
            f,
            "{} files, lines without tests: median {}, 90 % at most {}, longest {longest} ({}); {} functions, longest {}",
            self.files.len(),
            self.percentile(50).0,
            self.percentile(90).0,
            path.display(),
            self.functions,
            self.longest_function,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(files: &[(&str, String)]) -> (Vec<Finding>, Sizes) {
        let mut sizes = Sizes::default();
        let mut findings = Vec::new();
        for (path, text) in files {
            findings.extend(check(Path::new(path), &Source::parse(text), *path == "tests.rs", &mut sizes));
        }
        findings.extend(sizes.check());
        (findings, sizes)
    }

    #[test]
    fn a_long_function_is_found_even_in_a_test() {
        let long = format!("fn f() {{\n{}}}\n", "x();\n".repeat(69));
        let (findings, sizes) = measure(&[("tests.rs", long)]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].text.starts_with("`f` has 71 lines"), "{}", findings[0]);
        assert!(sizes.files.is_empty());
        let fitting = format!("fn f() {{\n{}}}\n", "x();\n".repeat(68));
        assert_eq!(measure(&[("a.rs", fitting)]).0, []);
    }

    #[test]
    fn lines_of_tests_beside_the_code_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "use a;\n".repeat(900));
        assert_eq!(measure(&[("a.rs", tests)]).0, []);
        let (findings, _) = measure(&[("a.rs", "use a;\n".repeat(801)), ("b.rs", String::new())]);
        assert!(findings.iter().any(|finding| finding.text.starts_with("801 lines")), "{findings:?}");
    }

    #[test]
    fn the_median_and_the_ninth_tenth_have_bars() {
        let file = |lines: usize| ("a.rs", "use a;\n".repeat(lines));
        let (findings, _) = measure(&[file(151), file(151), file(10)]);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].text.starts_with("half"));
        let mut files = vec![file(10); 8];
        files.extend([file(401), file(401)]);
        let (findings, _) = measure(&files);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].text.starts_with("90 %"));
    }
}
