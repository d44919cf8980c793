//! The stored counts: one line a file, `path phrases short_docs`, sorted, without files that have none.
//!
//! Git merges the file line by line (`merge=union` in `.gitattributes`), so a path can be there twice: the lower count
//! holds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// How many findings of each kind a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Phrases to reword.
    pub phrases: usize,
    /// Docs of public items with fewer than four words.
    pub short_docs: usize,
}

/// The counts of every file that has findings.
pub type Found = BTreeMap<PathBuf, Counts>;

/// The stored counts.
pub struct Baseline {
    files: Found,
    /// Paths with more than one line.
    repeated: Vec<PathBuf>,
}

/// Reads the stored counts.
///
/// # Errors
///
/// A line that is not a path and two numbers.
pub fn parse(text: &str) -> Result<Baseline, String> {
    let mut baseline = Baseline { files: BTreeMap::new(), repeated: Vec::new() };
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let counts = match fields.as_slice() {
            [path, phrases, short_docs] => {
                phrases.parse().ok().zip(short_docs.parse().ok()).map(|counts| (path, counts))
            }
            _ => None,
        };
        let (path, (phrases, short_docs)) =
            counts.ok_or_else(|| format!("prose/baseline.txt: not a path and two numbers: `{line}`"))?;
        let path = PathBuf::from(path);
        let counts = Counts { phrases, short_docs };
        match baseline.files.get_mut(&path) {
            Some(earlier) => {
                earlier.phrases = earlier.phrases.min(phrases);
                earlier.short_docs = earlier.short_docs.min(short_docs);
                baseline.repeated.push(path);
            }
            None => drop(baseline.files.insert(path, counts)),
        }
    }
    Ok(baseline)
}

impl Baseline {
    /// The counts that a file may have; zero for a path that is not stored.
    pub fn get(&self, path: &Path) -> Counts {
        self.files.get(path).copied().unwrap_or_default()
    }

    /// Paths whose stored counts are higher than the found ones, or stored twice.
    pub fn stale<'a>(&'a self, found: &Found) -> Vec<&'a Path> {
        let is_lower = |path: &PathBuf, stored: &Counts| {
            let now = found.get(path).copied().unwrap_or_default();
            now.phrases < stored.phrases || now.short_docs < stored.short_docs
        };
        let stale =
            self.files.iter().filter(|(path, stored)| is_lower(path, stored) || self.repeated.contains(path));
        stale.map(|(path, _)| path.as_path()).collect()
    }

    /// The text of a baseline with the found counts, and a line for each crate or top-level folder with more findings
    /// than are stored for it. The stored counts of these stay.
    pub fn lowered_to(&self, found: &Found) -> (String, Vec<String>) {
        let (allowed, now) = (sums(&self.files), sums(found));
        let has_grown = |group: &PathBuf| {
            let (stored, now) = (count(&allowed, group), count(&now, group));
            now.phrases > stored.phrases || now.short_docs > stored.short_docs
        };
        let (grown, lowered): (Vec<_>, Vec<_>) = now.keys().partition(|group| has_grown(group));
        let mut files = Found::new();
        for (counts, groups) in [(&self.files, &grown), (found, &lowered)] {
            let of_groups = counts.iter().filter(|(path, _)| groups.contains(&&group_of(path)));
            files.extend(of_groups.map(|(path, counts)| (path.clone(), *counts)));
        }
        let complain = |group: &&PathBuf| {
            let (stored, now) = (count(&allowed, group), count(&now, group));
            format!(
                "{}: {} phrases and {} short docs, {} and {} are stored: the counts may only shrink",
                group.display(),
                now.phrases,
                now.short_docs,
                stored.phrases,
                stored.short_docs
            )
        };
        (print(&files), grown.iter().map(complain).collect())
    }
}

fn count(counts: &Found, path: &Path) -> Counts {
    counts.get(path).copied().unwrap_or_default()
}

fn print(found: &Found) -> String {
    let mut text = String::new();
    for (path, counts) in found.iter().filter(|(_, counts)| **counts != Counts::default()) {
        let _ = writeln!(text, "{} {} {}", path.display(), counts.phrases, counts.short_docs);
    }
    text
}

/// The crate of a file, or its top-level folder outside of `crates/`.
fn group_of(path: &Path) -> PathBuf {
    let depth = if path.starts_with("crates") { 2 } else { 1 };
    path.components().take(depth).collect()
}

/// The sums per crate, or per top-level folder outside of `crates/`.
fn sums(files: &Found) -> Found {
    let mut sums = Found::new();
    for (path, counts) in files {
        let sum = sums.entry(group_of(path)).or_default();
        sum.phrases += counts.phrases;
        sum.short_docs += counts.short_docs;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, usize, usize)]) -> Found {
        let counts = |&(path, phrases, short_docs): &(&str, _, _)| {
            (PathBuf::from(path), Counts { phrases, short_docs })
        };
        files.iter().map(counts).collect()
    }

    fn stored(text: &str) -> Baseline {
        parse(text).expect("a baseline")
    }

    #[test]
    fn lower_and_repeated_counts_are_stale() {
        let baseline = stored("crates/a/x.rs 2 0\ncrates/a/y.rs 1 1\ncrates/a/z.rs 1 0\ncrates/a/z.rs 3 0\n");
        let found = found(&[("crates/a/x.rs", 1, 0), ("crates/a/y.rs", 1, 1), ("crates/a/z.rs", 1, 0)]);
        assert_eq!(baseline.stale(&found), [Path::new("crates/a/x.rs"), Path::new("crates/a/z.rs")]);
        assert_eq!(baseline.get(Path::new("crates/a/z.rs")).phrases, 1);
    }

    #[test]
    fn a_removed_file_is_stale() {
        assert_eq!(stored("a.md 2 0\n").stale(&Found::new()), [Path::new("a.md")]);
    }

    #[test]
    fn lowering_drops_files_without_findings_and_allows_moves_in_a_crate() {
        let baseline = stored("crates/a/x.rs 2 1\n");
        let now = found(&[("crates/a/x.rs", 0, 0), ("crates/a/y.rs", 2, 0)]);
        assert_eq!(baseline.lowered_to(&now), ("crates/a/y.rs 2 0\n".to_owned(), Vec::new()));
    }

    #[test]
    fn a_crate_that_grew_keeps_its_counts_and_others_are_lowered() {
        let baseline = stored("crates/a/x.rs 2 0\ncrates/b/x.rs 9 9\n");
        let now = found(&[("crates/a/x.rs", 2, 1), ("crates/b/x.rs", 8, 9), ("crates/c/x.rs", 1, 0)]);
        let (text, grown) = baseline.lowered_to(&now);
        assert_eq!(text, "crates/a/x.rs 2 0\ncrates/b/x.rs 8 9\n");
        assert!(
            grown[0].starts_with("crates/a: 2 phrases and 1 short docs, 2 and 0 are stored"),
            "{}",
            grown[0]
        );
        assert!(grown[1].starts_with("crates/c: "), "{}", grown[1]);
    }

    #[test]
    fn a_line_of_another_shape_is_an_error() {
        for text in ["a.rs 1\n", "a.rs x 1\n", "a.rs 1 1 1\n", "\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
