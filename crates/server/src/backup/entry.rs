//! What a backup consists of, and what takes it in.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Done;

/// What stands under a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    /// To this target, whatever that is.
    Link(PathBuf),
}

/// A file, folder or link of a backup.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// From the top of the backup: `data/log/0000000001.log`.
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    /// Rights, of which its owner always has those to read and write.
    pub(super) mode: u32,
    /// Of a file.
    pub(super) bytes: u64,
    /// Seconds since 1970.
    pub(super) modified: u64,
}

impl Entry {
    /// A text of the backup's own.
    pub(super) fn text(name: &str, bytes: usize) -> Self {
        let path = PathBuf::from(OsStr::new(name));
        Self { path, kind: Kind::File, mode: 0o600, bytes: bytes as u64, modified: 0 }
    }

    pub(super) fn folder(path: &Path) -> Self {
        Self { path: path.to_owned(), kind: Kind::Folder, mode: 0o700, bytes: 0, modified: 0 }
    }
}

/// Takes in a backup's entries: folders before what is in them.
pub(super) trait Sink {
    /// Takes one in. `content` has the bytes of a file, and not one more; a sink need not read them.
    fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()>;

    /// There are no more.
    fn end(&mut self) -> Done<()> {
        Ok(())
    }
}
