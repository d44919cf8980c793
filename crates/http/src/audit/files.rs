//! The files of the audit log. Entries are appended to `audit.jsonl`. When the file is full, it is renamed to
//! `audit.1.jsonl`, that file to `audit.2.jsonl` and so on. The oldest file is deleted.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::entry::Entry;
use super::storage::{AuditLine, AuditRuns, AuditStorage};

/// The size limit of one file, in bytes, and the number of files.
#[derive(Clone, Copy, Debug)]
pub(super) struct RotationLimits {
    pub(super) file_bytes_max: u64,
    pub(super) files_max: usize,
}

/// A log in the files of a directory.
pub(super) struct FileStorage {
    folder: PathBuf,
    files_max: usize,
    files: Mutex<RotatedFiles>,
}

impl FileStorage {
    /// Opens the directory. A missing directory is created, readable by the server's user only.
    pub(super) fn open(folder: &Path, limits: RotationLimits) -> io::Result<Self> {
        let files = Mutex::new(RotatedFiles::open(folder, limits)?);
        Ok(Self { folder: folder.to_owned(), files_max: limits.files_max, files })
    }
}

impl AuditStorage for FileStorage {
    fn last_id(&self) -> io::Result<u64> {
        let newest = |number| entries(&path(&self.folder, number)).ok()?.iter().map(|entry| entry.id).max();
        Ok((0..self.files_max).find_map(newest).unwrap_or(0))
    }

    fn append(&self, lines: &[AuditLine]) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(&line.json);
            text.push(b'\n');
        }
        // A torn line costs itself alone.
        self.files.lock().unwrap_or_else(PoisonError::into_inner).append(&text)
    }

    /// A file that is rotated meanwhile may be read twice or not at all.
    fn runs(&self, _before: Option<u64>) -> AuditRuns<'_> {
        Box::new((0..self.files_max).map(|number| text_of(&path(&self.folder, number))))
    }
}

/// The files of the log, of which the current one is appended to.
struct RotatedFiles {
    folder: PathBuf,
    limits: RotationLimits,
    current: File,
    /// The length of `current`, in bytes.
    bytes: u64,
}

impl RotatedFiles {
    fn open(folder: &Path, limits: RotationLimits) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut current = append_to(&path(folder, 0))?;
        let bytes = end_last_line(&mut current)?;
        Ok(Self { folder: folder.to_owned(), limits, current, bytes })
    }

    /// Appends lines and syncs the file.
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + lines.len() as u64 > self.limits.file_bytes_max {
            self.rotate()?;
        }
        self.current.write_all(lines)?;
        self.bytes += lines.len() as u64;
        self.current.sync_data()
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (0..self.limits.files_max.saturating_sub(1)).rev() {
            match fs::rename(path(&self.folder, number), path(&self.folder, number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.limits.files_max <= 1 {
            fs::remove_file(path(&self.folder, 0))?;
        }
        self.current = append_to(&path(&self.folder, 0))?;
        self.bytes = 0;
        File::open(&self.folder)?.sync_all()
    }
}

/// The path of a file of the log. Number 0 is the current file; larger numbers are older.
fn path(folder: &Path, number: usize) -> PathBuf {
    folder.join(if number == 0 { "audit.jsonl".to_owned() } else { format!("audit.{number}.jsonl") })
}

/// The entries of a file, oldest first.
fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    Ok(Entry::of_lines(&text_of(path)?))
}

fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// Ends a line that was torn by a power failure, so that the next entry starts a new line. Returns the length of the file
/// in bytes.
fn end_last_line(file: &mut File) -> io::Result<u64> {
    let bytes = file.metadata()?.len();
    if bytes == 0 {
        return Ok(0);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == [b'\n'] {
        return Ok(bytes);
    }
    file.write_all(b"\n")?;
    Ok(bytes + 1)
}

#[cfg(test)]
mod tests {
    use longshore_model::{ApiKey, Millis};

    use super::*;

    fn line(id: u64) -> Vec<u8> {
        let key = ApiKey::new("k".into(), "n".into(), String::new(), Vec::new(), Millis(0));
        let entry = Entry { id, ..Entry::new_address(Millis(0), &key, None) };
        let mut line = serde_json::to_vec(&entry).unwrap();
        line.push(b'\n');
        line
    }

    fn ids(folder: &Path, number: usize) -> Vec<u64> {
        entries(&path(folder, number)).unwrap().iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn old_entries_go_with_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let limits = RotationLimits { file_bytes_max: 2 * line(1).len() as u64, files_max: 3 };
        let mut files = RotatedFiles::open(folder.path(), limits).unwrap();
        for id in 1..=9 {
            files.append(&line(id)).unwrap();
        }
        assert_eq!(
            (0..4).map(|number| ids(folder.path(), number)).collect::<Vec<_>>(),
            [vec![9], vec![7, 8], vec![5, 6], vec![]]
        );
        assert_eq!(FileStorage::open(folder.path(), limits).unwrap().last_id().unwrap(), 9);
    }

    #[test]
    fn one_file_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let limits = RotationLimits { file_bytes_max: 1, files_max: 1 };
        let mut files = RotatedFiles::open(folder.path(), limits).unwrap();
        for id in 1..=3 {
            files.append(&line(id)).unwrap();
        }
        assert_eq!((ids(folder.path(), 0), ids(folder.path(), 1)), (vec![3], vec![]));
    }

    #[test]
    fn a_torn_line_costs_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let limits = RotationLimits { file_bytes_max: 10_000, files_max: 2 };
        let whole = [line(1), line(2)].concat();
        for cut in 0..whole.len() {
            fs::write(path(folder.path(), 0), &whole[..cut]).unwrap();
            let mut files = RotatedFiles::open(folder.path(), limits).unwrap();
            files.append(&line(7)).unwrap();
            let left = ids(folder.path(), 0);
            assert!(left.ends_with(&[7]) && left.len() > cut / line(1).len(), "{cut}: {left:?}");
        }
    }
}
