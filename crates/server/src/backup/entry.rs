//! The entries of a backup, and the trait of what receives them.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Done;

/// The type of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    /// A symbolic link to this target, which is not checked.
    Link(PathBuf),
}

/// A file, directory or symbolic link of a backup.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Path relative to the backup: `data/log/0000000001.log`.
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// Permission bits. The owner's bits to read and write are always set.
    pub(super) mode: u32,
    /// Length of a file in bytes, else 0.
    pub(super) bytes: u64,
    /// Modification time in seconds since 1970.
    pub(super) modified: u64,
}

impl Entry {
    /// A text file of the backup itself.
    pub(super) fn text(name: &str, bytes: usize) -> Self {
        let path = PathBuf::from(OsStr::new(name));
        Self { path, kind: Kind::File, mode: 0o600, bytes: bytes as u64, modified: 0 }
    }

    pub(super) fn folder(path: &Path) -> Self {
        Self { path: path.to_owned(), kind: Kind::Folder, mode: 0o700, bytes: 0, modified: 0 }
    }
}

/// Receives a backup's entries. A directory precedes its contents.
pub(super) trait Sink {
    /// Receives one entry. `content` yields exactly the bytes of a file; a sink may leave them unread.
    fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()>;

    /// Ends the backup after the last entry.
    fn end(&mut self) -> Done<()> {
        Ok(())
    }
}
