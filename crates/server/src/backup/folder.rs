//! A backup as a directory.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::entry::{Entry, Kind, Sink};
use super::list::{self, ListWriter};
use super::{BackupError, DATA, Done, manifest, source};

/// Writes a backup's entries into a directory.
pub(super) struct FolderWriter {
    root: PathBuf,
}

impl FolderWriter {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Creates the parent directories of an entry. A symbolic link among them is refused, because it could lead
    /// outside.
    fn make_parents(&self, path: &Path) -> io::Result<()> {
        let above = path.parent().into_iter().flat_map(Path::ancestors);
        let above = above.take_while(|above| *above != self.root && above.starts_with(&self.root));
        let mut missing = Vec::new();
        for folder in above {
            match fs::symlink_metadata(folder) {
                Ok(facts) if facts.is_dir() => break,
                Ok(_) => return Err(io::Error::other("a parent is not a directory")),
                Err(_) => missing.push(folder),
            }
        }
        missing.iter().rev().try_for_each(|folder| DirBuilder::new().mode(0o700).create(folder))
    }

    fn write(&self, entry: &Entry, content: &mut dyn Read) -> io::Result<()> {
        let path = self.root.join(&entry.path);
        self.make_parents(&path)?;
        match &entry.kind {
            Kind::Folder => {
                DirBuilder::new().mode(0o700).create(&path)?;
                fs::set_permissions(&path, Permissions::from_mode(entry.mode))
            }
            Kind::Link(target) => symlink(target, &path),
            Kind::File => {
                let mut file: File =
                    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
                io::copy(content, &mut file)?;
                file.set_permissions(Permissions::from_mode(entry.mode))?;
                file.set_modified(UNIX_EPOCH + Duration::from_secs(entry.modified))
            }
        }
    }
}

impl Sink for FolderWriter {
    fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()> {
        self.write(entry, content).map_err(BackupError::io("write", &self.root.join(&entry.path)))
    }
}

/// Reads a backup's entries from a directory.
pub(super) struct FolderReader {
    root: PathBuf,
}

impl FolderReader {
    pub(super) fn of(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Copies the data entries to `data` and returns the list and the manifest.
    pub(super) fn read(&self, data: &mut ListWriter<'_>) -> Done<(Vec<u8>, Vec<u8>)> {
        let text = |name: &str| {
            fs::read(self.root.join(name)).map_err(|error| BackupError::NotWhole {
                path: self.root.clone(),
                what: format!("cannot read `{name}`: {error}"),
            })
        };
        let (list, manifest) = (text(list::NAME)?, text(manifest::NAME)?);
        source::read(&self.root.join(DATA), data)?;
        Ok((list, manifest))
    }
}
