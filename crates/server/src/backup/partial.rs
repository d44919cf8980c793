//! Something on its way to a name: it gets the name when it is whole, and until then nothing has it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};

use super::{BackupError, Done, remove};

/// What its name ends with. A later try removes what an earlier one left.
const PARTIAL: &str = ".partial";

/// See the module. Removed when it is dropped before it was published.
pub(super) struct Partial {
    path: PathBuf,
    target: PathBuf,
    // Held as long as it is written: the system drops the lock with the file.
    lock: File,
}

impl Partial {
    /// A file that is to be `target`.
    pub(super) fn file(target: &Path) -> Done<Self> {
        if fs::symlink_metadata(target).is_ok() {
            return Err(BackupError::Exists(target.to_owned()));
        }
        Self::make(target, |path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path))
    }

    /// A folder that is to be `target`, which is empty or is not there.
    pub(super) fn folder(target: &Path) -> Done<Self> {
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
        // Without the slash at its end.
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The file, opened to be written.
    pub(super) fn opened(&self) -> Done<File> {
        self.lock.try_clone().map_err(BackupError::io("open", &self.path))
    }

    /// Gives it its name, durably.
    pub(super) fn publish(self) -> Done<()> {
        self.rename(&self.path)
    }

    /// Gives a folder in it the name; the rest goes.
    pub(super) fn publish_folder(self, folder: &Path) -> Done<()> {
        self.rename(folder)
    }

    fn rename(&self, from: &Path) -> Done<()> {
        let (target, io) = (&self.target, |cause| BackupError::io("make", &self.target)(cause));
        // All of it at once, instead of each file and folder by itself.
        syncfs(&self.lock).map_err(|error| io(error.into()))?;
        match renameat_with(CWD, from, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            // An empty folder, or a file system that knows nothing of it: what has content is not replaced by a folder.
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

/// The folder that something is in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
