//! The checks that no other tool makes. Every finding is one line: where, what, and what to do.

mod dead_files;
mod dependencies;
mod forbidden;
mod links;
mod modules;
mod prose;
mod quoted_files;
mod rooms;
mod sizes;
mod source;
mod test_files;
mod tokens;
mod web;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::workspace::{self, Metadata};
use source::Source;
use test_files::TestFiles;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the workspace.
    pub path: PathBuf,
    /// Counted from 1; 0 for the file as a whole.
    pub line: usize,
    /// What, and what to do.
    pub text: String,
}

impl Finding {
    fn new(path: &Path, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_path_buf(), line, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line.max(1), self.text)
    }
}

/// A text file of the project.
pub struct File {
    /// Relative to the workspace.
    pub path: PathBuf,
    /// The whole file, as UTF-8.
    pub text: String,
}

impl File {
    fn has_extension(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }
}

/// Checks the whole project.
///
/// # Errors
///
/// Findings, which are printed, or a file that cannot be read.
pub fn run() -> Result<(), String> {
    let metadata = Metadata::read()?;
    let files = read_files()?;
    let mut findings = dependencies::check(&metadata);
    for file in &files {
        if file.has_extension("md") {
            findings.extend(links::check(file, &workspace::root()));
            findings.extend(quoted_files::check(file, &workspace::root()));
        }
        findings.extend(forbidden::check_text(file));
        findings.extend(web::check(file));
    }
    let sources = parse(&files);
    findings.extend(prose::check(&files, &sources));
    findings.extend(dead_files::check(&sources));
    findings.extend(modules::check(&sources));
    findings.extend(rooms::check(&sources));
    let mut tests = TestFiles::default();
    for (path, source) in &sources {
        tests.add(path, source);
    }
    let mut measured = sizes::Sizes::default();
    for (path, source) in &sources {
        let is_test = tests.contains(path);
        findings.extend(sizes::check(path, source, is_test, &mut measured));
        findings.extend(forbidden::check_rust(path, source, is_test));
    }
    findings.extend(measured.check());
    println!("tidy: {measured}");
    report(findings)
}

fn parse(files: &[File]) -> Vec<(&Path, Source)> {
    let rust = files.iter().filter(|file| file.has_extension("rs"));
    rust.map(|file| (&*file.path, Source::parse(&file.text))).collect()
}

/// Prints the findings and counts them.
fn report(mut findings: Vec<Finding>) -> Result<(), String> {
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err("tidy: 1 finding".to_owned()),
        count => Err(format!("tidy: {count} findings")),
    }
}

fn read_files() -> Result<Vec<File>, String> {
    let root = workspace::root();
    let read = |path: PathBuf| match std::fs::read(root.join(&path)) {
        // Files that are not text (images, archives) have nothing to check.
        Ok(bytes) => String::from_utf8(bytes).ok().map(|text| Ok(File { path, text })),
        Err(error) => Some(Err(format!("cannot read {}: {error}", path.display()))),
    };
    workspace::files()?.into_iter().filter_map(read).collect()
}
