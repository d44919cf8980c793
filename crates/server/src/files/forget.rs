//! Removes deployed code that has been unused for a day.
//!
//! The times are kept in memory and start again with every server. So a template that is missing for less than a
//! day, for example in a restored directory or by mistake, does not cost its code.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longshore_model::CodeHash;

use super::archive::remove;
use super::code::{DRAFT, GONE, archive_path, versions};

/// How long code must be unused before it is removed.
const UNUSED_MIN: Duration = Duration::from_hours(24);
/// Versions that are kept of a name while one of its versions is used.
const VERSIONS_KEPT: usize = 10;

/// Unused code, and the time since when.
#[derive(Default)]
pub(super) struct Unused(Mutex<HashMap<PathBuf, Instant>>);

impl Unused {
    fn found(&self) -> MutexGuard<'_, HashMap<PathBuf, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Restarts the time of `folder`, because a request is about to use it.
    pub(super) fn touch(&self, folder: &Path) {
        self.found().remove(folder);
    }

    /// Scans the directories below `code` and removes what was unused at every scan of the last `UNUSED_MIN`.
    pub(super) fn look(&self, code: &Path, now: Instant, is_used: &dyn Fn(&CodeHash) -> bool) {
        let unused: Vec<PathBuf> = entries(code).iter().flat_map(|name| unused_in(name, is_used)).collect();
        let mut found = self.found();
        found.retain(|path, _| unused.contains(path));
        let mut gone = Vec::new();
        for path in unused {
            let since = *found.entry(path.clone()).or_insert(now);
            if is_gone(&path) || now.duration_since(since) >= UNUSED_MIN {
                found.remove(&path);
                // Renamed while the lock is held, so that no request can touch it. A new upload creates its own
                // directory.
                gone.extend(set_aside(&path));
            }
        }
        drop(found);
        for path in gone {
            remove(&path);
        }
    }
}

/// Returns the unused directories of a name: all of it, or old versions and abandoned drafts.
fn unused_in(name: &Path, is_used: &dyn Fn(&CodeHash) -> bool) -> Vec<PathBuf> {
    let versions = versions(name, "");
    let is_unused = |hash: &CodeHash| !is_used(hash);
    if is_gone(name) || versions.iter().all(|version| is_unused(&version.hash)) && !has_used(name, is_used) {
        return vec![name.to_owned()];
    }
    let old = versions.iter().skip(VERSIONS_KEPT).filter(|version| is_unused(&version.hash));
    let old = old.map(|version| name.join(version.hash.as_str()));
    let is_left = |path: &PathBuf| {
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        file_name.starts_with(DRAFT) || is_gone(path)
    };
    old.chain(entries(name).into_iter().filter(is_left)).collect()
}

/// Whether a used version is incomplete; its note may be damaged.
fn has_used(name: &Path, is_used: &dyn Fn(&CodeHash) -> bool) -> bool {
    // An unreadable directory counts as used.
    let Ok(entries) = fs::read_dir(name) else { return true };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).any(|hash| is_used(&hash))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Whether the name marks an interrupted removal.
fn is_gone(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == GONE)
}

fn set_aside(path: &Path) -> Option<PathBuf> {
    let gone = if is_gone(path) { path.to_owned() } else { path.with_extension(GONE) };
    // Without its note the version is incomplete and no longer listed.
    let _ = fs::remove_file(path.with_extension("json"));
    let _ = fs::remove_file(archive_path(path));
    match fs::rename(path, &gone) {
        Ok(()) => {
            tracing::info!(path = %path.display(), "removed unused code");
            Some(gone)
        }
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "unused code not removed");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::keep;
    use super::super::hostile::archive_of;
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    struct Fixture {
        dir: tempfile::TempDir,
        unused: Unused,
        now: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap(), unused: Unused::default(), now: Instant::now() }
        }

        fn keep(&self, name: &str, text: &str) -> CodeHash {
            let archive = archive_of(&[("handler.py", text)]);
            keep(&self.dir.path().join(name), name, &archive, "key-1").unwrap().version.hash
        }

        /// Scans once per hour.
        fn wait(&mut self, hours: u32, used: &[&CodeHash]) {
            for _ in 0..hours {
                self.now += HOUR;
                self.unused.look(self.dir.path(), self.now, &|code| used.contains(&code));
            }
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = entries(self.dir.path())
                .iter()
                .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn code_goes_when_nothing_has_run_it_for_a_day() {
        let mut ground = Fixture::new();
        let runs = ground.keep("runs", "1");
        ground.keep("unused", "2");
        ground.wait(24, &[&runs]);
        assert_eq!(ground.names(), ["runs", "unused"], "unused for only 23 hours");
        ground.wait(1, &[&runs]);
        assert_eq!(ground.names(), ["runs"]);
        ground.wait(100, &[&runs]);
        assert_eq!(ground.names(), ["runs"]);
    }

    #[test]
    fn a_start_and_a_use_of_the_code_begin_the_day_anew() {
        let mut ground = Fixture::new();
        let code = ground.keep("hello", "1");
        ground.wait(24, &[]);
        ground.unused = Unused::default();
        ground.wait(24, &[]);
        ground.wait(1, &[&code]);
        ground.wait(24, &[]);
        ground.unused.touch(&ground.dir.path().join("hello"));
        ground.wait(24, &[]);
        assert_eq!(ground.names(), ["hello"]);
        // The note is damaged, but the version is used.
        fs::write(ground.dir.path().join(format!("hello/{code}.json")), "").unwrap();
        ground.wait(100, &[&code]);
        assert_eq!(ground.names(), ["hello"]);
    }

    #[test]
    fn old_versions_drafts_and_cut_short_removals_go() {
        let mut ground = Fixture::new();
        let oldest = ground.keep("hello", "0");
        let hashes: Vec<CodeHash> = (1..=11).map(|text| ground.keep("hello", &text.to_string())).collect();
        let hello = ground.dir.path().join("hello");
        fs::create_dir(hello.join(".draft-1")).unwrap();
        fs::create_dir_all(ground.dir.path().join("half.gone/x")).unwrap();
        ground.wait(1, &[&oldest]);
        assert_eq!(ground.names(), ["hello"]);
        assert_eq!(versions(&hello, "").len(), 12);
        ground.wait(24, &[&oldest]);
        let left: Vec<CodeHash> = versions(&hello, "").into_iter().map(|version| version.hash).collect();
        let mut expected: Vec<CodeHash> = hashes[1..].iter().rev().cloned().collect();
        expected.push(oldest);
        assert_eq!(left, expected, "the newest ten, and the running one");
        assert!(!hello.join(hashes[0].as_str()).exists() && !hello.join(".draft-1").exists());
    }
}
