//! A file or directory that is written under a temporary name and renamed when it is complete.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};

use super::{BackupError, Done, remove};

/// Suffix of the temporary name. A later run removes what an interrupted one left.
const PARTIAL: &str = ".partial";

/// An incomplete file or directory. Removed on drop unless it was published.
pub(crate) struct Partial {
    path: PathBuf,
    target: PathBuf,
    // Locked while it is written; the system releases the lock when the process ends.
    lock: File,
}

impl Partial {
    /// Creates the temporary file for `target`.
    pub(super) fn file(target: &Path) -> Done<Self> {
        if fs::symlink_metadata(target).is_ok() {
            return Err(BackupError::Exists(target.to_owned()));
        }
        Self::make(target, |path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path))
    }

    /// Creates the temporary directory for `target`, which must be missing or empty.
    pub(crate) fn folder(target: &Path) -> Done<Self> {
        match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            _ => return Err(BackupError::Exists(target.to_owned())),
        }
        Self::make(target, |path| {
            DirBuilder::new().mode(0o700).create(path)?;
            File::open(path)
        })
    }

    fn make(target: &Path, create: impl Fn(&Path) -> io::Result<File>) -> Done<Self> {
        // Removes a trailing slash.
        let target: PathBuf = target.components().collect();
        let mut path = OsString::from(target.as_os_str());
        path.push(PARTIAL);
        let path = PathBuf::from(path);
        if let Ok(left) = File::open(&path) {
            if left.try_lock().is_err() {
                return Err(BackupError::Busy(path));
            }
            remove(&path);
        }
        let parent = parent(&target);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(BackupError::io("make", parent))?;
        let lock = create(&path).map_err(BackupError::io("make", &path))?;
        if lock.try_lock().is_err() {
            return Err(BackupError::Busy(path));
        }
        Ok(Self { path, target, lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for writing.
    pub(super) fn opened(&self) -> Done<File> {
        self.lock.try_clone().map_err(BackupError::io("open", &self.path))
    }

    /// Renames the file or directory to its target, durably.
    pub(super) fn publish(self) -> Done<()> {
        self.rename(&self.path)
    }

    /// Renames a directory inside the temporary one to the target and removes the rest.
    pub(crate) fn publish_folder(self, folder: &Path) -> Done<()> {
        self.rename(folder)
    }

    fn rename(&self, from: &Path) -> Done<()> {
        let (target, io) = (&self.target, |cause| BackupError::io("make", &self.target)(cause));
        // One `syncfs` instead of a sync per file and directory.
        syncfs(&self.lock).map_err(|error| io(error.into()))?;
        match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            // Replacing an empty directory, or a file system without this kind of rename: `rename` never replaces a
            // directory with content.
            Err(_) if from.is_dir() => fs::rename(from, target).map_err(io)?,
            Err(error) => return Err(io(error.into())),
        }
        let parent = parent(target);
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(BackupError::io("write", parent))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok() {
            remove(&self.path);
        }
    }
}

/// Returns the parent directory.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
