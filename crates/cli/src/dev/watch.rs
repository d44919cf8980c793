//! Detects changes of the handler's files.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::project::MANIFEST;

/// Shortest interval between two scans of the directory.
const PERIOD: Duration = Duration::from_millis(200);
/// How much longer the interval is than a scan of many files.
const SCANS_PER_PERIOD: u32 = 20;
/// Most files that are watched; changes of further ones are not noticed.
const FILES_MAX: usize = 5_000;

/// Kinds of files that changed. Several may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// `requirements.txt` or `longshore.toml` changed: the project is read again.
    pub(crate) project: bool,
    /// A Python file changed.
    pub(crate) source: bool,
    /// Whether `test_input.json` changed.
    pub(crate) sample: bool,
}

/// Path, modification time and size of every watched file.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct FileTimes {
    files: BTreeMap<PathBuf, (Option<SystemTime>, u64)>,
}

impl FileTimes {
    /// Returns the modification times of the watched files below `dir`.
    pub(crate) fn look(dir: &Path) -> Self {
        let mut files = BTreeMap::new();
        collect(dir, true, &mut files);
        Self { files }
    }

    /// A text that changes when workers must be replaced: after a change of a source file or of the requirements.
    pub(crate) fn fingerprint(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for (path, seen) in &self.files {
            let installs = path.file_name().is_some_and(|name| name == "requirements.txt");
            if installs || path.extension().is_some_and(|extension| extension == "py") {
                (path, seen).hash(&mut hasher);
            }
        }
        format!("{:016x}", hasher.finish())
    }

    fn changes_since(&self, before: &Self) -> Changes {
        let mut changes = Changes::default();
        let both = before.files.keys().chain(self.files.keys());
        for path in both.filter(|path| before.files.get(*path) != self.files.get(*path)) {
            match path.file_name().and_then(|name| name.to_str()) {
                Some("test_input.json") => changes.sample = true,
                Some("requirements.txt" | MANIFEST) => changes.project = true,
                _ => changes.source = true,
            }
        }
        changes
    }
}

/// Waits until the directory differs from `seen` and is unchanged for one interval. Updates `seen`.
pub(crate) async fn changed(dir: &Path, seen: &mut FileTimes) -> Changes {
    let mut last = seen.clone();
    let mut pause = PERIOD;
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        let now = FileTimes::look(dir);
        pause = PERIOD.max(began.elapsed() * SCANS_PER_PERIOD);
        // Editors save in several steps, so the files must be unchanged for one interval.
        let rested = now == last;
        if rested && now != *seen {
            let changes = now.changes_since(seen);
            *seen = now;
            return changes;
        }
        last = now;
    }
}

fn collect(dir: &Path, top: bool, files: &mut BTreeMap<PathBuf, (Option<SystemTime>, u64)>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Links to files are followed. Links to directories are skipped, because they can form cycles.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let foreign = name.starts_with('.') || name == "__pycache__" || name == "node_modules";
            if !foreign && !path.join("pyvenv.cfg").exists() {
                collect(&path, false, files);
            }
        } else if is_watched(&name, top)
            && files.len() < FILES_MAX
            && let Ok(facts) = fs::metadata(&path)
        {
            files.insert(path, (facts.modified().ok(), facts.len()));
        }
    }
}

fn is_watched(name: &str, top: bool) -> bool {
    let python = Path::new(name).extension().is_some_and(|extension| extension == "py");
    python && !name.starts_with('.')
        || top && ["requirements.txt", "test_input.json", MANIFEST].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_handlers_own_files_count() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("handler.py", "1");
        let before = FileTimes::look(dir.path());
        for noise in ["out.json", ".longshore/x.py", "env/pyvenv.cfg", "env/lib/a.py", "__pycache__/b.py"] {
            write(noise, "2");
        }
        assert_eq!(FileTimes::look(dir.path()).changes_since(&before), Changes::default());
        write("lib/model.py", "longer");
        write("test_input.json", "{}");
        let after = FileTimes::look(dir.path());
        assert_eq!(after.changes_since(&before), Changes { source: true, sample: true, project: false });
        assert_ne!(after.fingerprint(), before.fingerprint());
    }

    #[tokio::test]
    async fn a_change_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("handler.py"), "1").unwrap();
        let mut seen = FileTimes::look(dir.path());
        fs::write(dir.path().join("handler.py"), "12").unwrap();
        let changes = tokio::time::timeout(Duration::from_mins(1), changed(dir.path(), &mut seen)).await;
        assert_eq!(changes.unwrap(), Changes { source: true, ..Changes::default() });
    }
}
