//! How many bytes the files with rows and payloads have.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The folders of the data directory that have rows and payloads.
const FOLDERS: [&str; 2] = ["log", "blobs"];
/// How long a measurement holds. One walks over all files.
const HOLDS: Duration = Duration::from_mins(5);

/// The size of the stored files, measured again when it is asked for and the last measurement no longer holds.
#[derive(Debug)]
pub(super) struct StoredBytes {
    folders: [PathBuf; 2],
    measured: Mutex<Option<(Instant, u64)>>,
}

impl StoredBytes {
    /// The files below this data directory.
    pub(super) fn of(data_dir: &Path) -> Self {
        Self { folders: FOLDERS.map(|name| data_dir.join(name)), measured: Mutex::default() }
    }

    /// Returns their size in bytes, of the last 5 minutes. Reads the folders, so it can take a second with many payloads.
    pub(super) fn get(&self) -> u64 {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        match &*measured {
            Some((at, bytes)) if at.elapsed() < HOLDS => *bytes,
            _ => {
                let bytes = self.folders.iter().map(|folder| bytes_below(folder)).sum();
                *measured = Some((Instant::now(), bytes));
                bytes
            }
        }
    }
}

/// The size of the files below a folder. What is removed meanwhile, or cannot be read, counts as nothing.
fn bytes_below(folder: &Path) -> u64 {
    let (mut bytes, mut folders) = (0, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes += metadata.len(),
                Err(_) => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_payloads_count_and_other_files_do_not() {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in [("log/1.log", 5), ("blobs/ab/cd", 7), ("workers/log", 100)] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![0; bytes]).unwrap();
        }
        let stored = StoredBytes::of(dir.path());
        assert_eq!(stored.get(), 12);
        fs::write(dir.path().join("log/2.log"), [0; 3]).unwrap();
        assert_eq!(stored.get(), 12, "a measurement holds for 5 minutes");
        assert_eq!(StoredBytes::of(&dir.path().join("missing")).get(), 0);
    }
}
