//! Whether a store can be opened from what is in a backup.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::entry::{Entry, Kind, Sink};
use super::folder::FolderWriter;
use super::{BackupError, DATA, Done};

/// Keeps of a backup what the store's own check needs: the log, and of large payloads their names and lengths. Their bytes
/// are compared with the list.
pub(super) struct CheckedData {
    folder: PathBuf,
    writer: FolderWriter,
}

impl CheckedData {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), writer: FolderWriter::new(folder) }
    }
}

impl Sink for CheckedData {
    fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()> {
        let Ok(inner) = entry.path.strip_prefix(DATA) else { return Ok(()) };
        let entry = Entry { path: inner.to_owned(), ..entry.clone() };
        if inner.starts_with("log") {
            return self.writer.put(&entry, content);
        }
        if !inner.starts_with("blobs") {
            return Ok(());
        }
        self.writer.put(&entry, &mut std::io::empty())?;
        if entry.kind == Kind::File {
            let path = self.folder.join(inner);
            let sized = File::options().write(true).open(&path).and_then(|file| file.set_len(entry.bytes));
            sized.map_err(BackupError::io("write", &path))?;
        }
        Ok(())
    }
}

/// Checks the store in a data folder; answers how many jobs it has.
pub(super) fn store_in(data: &Path) -> Done<u64> {
    let verified = longshore_store::verify(data)?;
    match verified.damages.first() {
        None => Ok(verified.jobs),
        Some(damage) => Err(BackupError::Damaged(damage.to_string())),
    }
}
