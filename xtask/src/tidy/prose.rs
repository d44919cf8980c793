//! Plain English: phrases that hide the subject, the unit or the bound, and docs that are too short to say anything.
//!
//! Each file has two counts, phrases and short docs. `prose/baseline.txt` stores the counts that are not zero; they
//! may only shrink.

mod baseline;
mod phrases;
mod short_docs;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use super::source::Source;
use super::{File, Finding};
use crate::workspace;
pub use baseline::Counts;

const BASELINE: &str = "xtask/src/tidy/prose/baseline.txt";

/// Kinds of files that contain prose: comments and texts in the code, help texts, the manual, settings.
const EXTENSIONS: [&str; 5] = ["rs", "md", "py", "toml", "txt"];

/// The sources of this check, which contain the phrases.
const OWN_FILES: [&str; 2] = ["xtask/src/tidy/prose", "xtask/src/tidy/prose.rs"];

/// The findings of one file.
pub struct FileProse<'a> {
    path: &'a Path,
    phrases: Vec<Finding>,
    short_docs: Vec<Finding>,
}

impl FileProse<'_> {
    fn counts(&self) -> Counts {
        Counts { phrases: self.phrases.len(), short_docs: self.short_docs.len() }
    }
}

/// Finds phrases and short docs in every file that contains prose. This check does not read its own sources.
pub fn scan<'a>(files: &'a [File], sources: &[(&Path, Source)]) -> Vec<FileProse<'a>> {
    let sources: BTreeMap<&Path, &Source> = sources.iter().map(|(path, source)| (*path, source)).collect();
    let checked = files.iter().filter(|file| {
        EXTENSIONS.iter().any(|extension| file.has_extension(extension))
            && !OWN_FILES.iter().any(|own| file.path.starts_with(own))
    });
    let scan_file = |file: &'a File| {
        let path = file.path.as_path();
        let (text, short_docs) = match sources.get(path) {
            Some(source) => (words::without_code(&file.text, &source.code), short_docs::find(path, source)),
            None => (file.text.clone(), Vec::new()),
        };
        FileProse { path, phrases: phrases::find(path, &text), short_docs }
    };
    checked.map(scan_file).collect()
}

/// Compares the counts of all files with the baseline.
pub fn check(scanned: Vec<FileProse<'_>>) -> Result<Vec<Finding>, String> {
    let stored = baseline::parse(&read_baseline()?)?;
    let mut found = BTreeMap::new();
    let mut findings = Vec::new();
    for file in scanned {
        let (now, allowed) = (file.counts(), stored.get(file.path));
        found.insert(file.path.to_path_buf(), now);
        findings.extend(report_grown(file.path, file.phrases, allowed.phrases, "phrases to reword"));
        findings.extend(report_grown(file.path, file.short_docs, allowed.short_docs, "short docs"));
    }
    for path in stored.stale(&found) {
        let text =
            format!("the stored counts of {} are too high: run `cargo xtask tidy --bless`", path.display());
        findings.push(Finding::new(Path::new(BASELINE), 0, text));
    }
    Ok(findings)
}

/// Returns every finding below one of `paths`, or all of them without paths, as if the baseline was empty.
pub fn list(scanned: Vec<FileProse<'_>>, paths: &[&str]) -> Vec<Finding> {
    let chosen = scanned
        .into_iter()
        .filter(|file| paths.is_empty() || paths.iter().any(|path| file.path.starts_with(path)));
    chosen.flat_map(|file| file.phrases.into_iter().chain(file.short_docs)).collect()
}

/// Writes today's counts to the baseline.
///
/// # Errors
///
/// The sum of a crate or of a top-level folder is higher than the stored one; its stored counts stay, the others are
/// written. A single file may have a higher count: its text may come from another file of the crate.
pub fn bless(scanned: &[FileProse<'_>]) -> Result<(), String> {
    let stored = baseline::parse(&read_baseline()?)?;
    let found = scanned.iter().map(|file| (file.path.to_path_buf(), file.counts())).collect();
    let (text, grown) = stored.lowered_to(&found);
    std::fs::write(workspace::root().join(BASELINE), text)
        .map_err(|error| format!("cannot write {BASELINE}: {error}"))?;
    if grown.is_empty() { Ok(()) } else { Err(grown.join("\n")) }
}

fn read_baseline() -> Result<String, String> {
    std::fs::read_to_string(workspace::root().join(BASELINE))
        .map_err(|error| format!("cannot read {BASELINE}: {error}"))
}

/// All findings of one kind in a file if there are more than `allowed`, else none: which of them are new is not known.
fn report_grown(path: &Path, findings: Vec<Finding>, allowed: usize, kind: &str) -> Vec<Finding> {
    if findings.len() <= allowed {
        return Vec::new();
    }
    let text = format!("{} {kind}, {allowed} are allowed by {BASELINE}: reword these", findings.len());
    let summary = Finding::new(path, 0, text);
    std::iter::once(summary).chain(findings).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan_text(path: &str, text: &str) -> (usize, usize) {
        let files = [File { path: path.into(), text: text.to_owned() }];
        let sources: Vec<_> = files
            .iter()
            .filter(|file| file.has_extension("rs"))
            .map(|file| (file.path.as_path(), Source::parse(&file.text)))
            .collect();
        scan(&files, &sources).first().map_or((0, 0), |file| (file.phrases.len(), file.short_docs.len()))
    }

    #[test]
    fn comments_and_literals_of_rust_are_read_but_not_its_code() {
        let text = "/// Nobody may read it.\npub fn nobody() {\n    fail(\"whoever asks\");\n}\n";
        assert_eq!(scan_text("crates/x/src/lib.rs", text), (2, 0));
    }

    #[test]
    fn other_texts_are_read_whole_and_data_is_not() {
        assert_eq!(scan_text("docs/manual/a.md", "Nobody, at once."), (2, 0));
        assert_eq!(scan_text("crates/x/settings.toml", "# So many jobs.\njobs = 1"), (1, 0));
        assert_eq!(scan_text("data.json", "{\"text\": \"nobody\"}"), (0, 0));
    }

    #[test]
    fn a_file_that_grew_lists_all_its_findings() {
        let path = Path::new("a.rs");
        let finding = |line| Finding::new(path, line, "x");
        assert_eq!(report_grown(path, vec![finding(1), finding(2)], 2, "k"), []);
        let reported = report_grown(path, vec![finding(1), finding(2)], 1, "k");
        assert_eq!(reported.len(), 3);
        assert!(reported[0].text.starts_with("2 k, 1 are allowed"), "{}", reported[0]);
    }

    #[test]
    fn the_stored_baseline_can_be_read() {
        let text = read_baseline().expect("the baseline is part of the project");
        assert!(baseline::parse(&text).is_ok());
    }
}
