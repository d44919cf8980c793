//! Unpacks an archive that came from outside: files and folders, and nothing that leads out of the folder.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use longshore_http::CodeError;
use tar::{Archive, EntryType};

use super::extensions::Extensions;

/// What an archive may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of all files together; every entry counts as a block besides.
    pub(super) bytes_max: u64,
    /// Files and folders, also those folders that are only named in a path, and the entries that describe others.
    pub(super) entries_max: u64,
}

/// Far more than a handler has, far less than a disk.
pub(super) const BOUNDS: Bounds = Bounds { bytes_max: 512_000_000, entries_max: 20_000 };

/// Headers and padding count, too: an archive of nothing but those would be read without an end.
const OVERHEAD_BYTES_PER_ENTRY: u64 = 4_096;
/// Folders within folders; removing and comparing them takes a step of the stack each.
const DEPTH_MAX: usize = 64;

/// What was unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unpacked {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Unpacks `archive` into `folder`, which is empty, and leaves it on the disk. Whatever the archive says, no more than a
/// few pages of memory are used: long names and extended headers are read here, for the reader of the library takes any
/// length of them.
pub(super) fn unpack(archive: &[u8], folder: &Path, bounds: Bounds) -> Result<Unpacked, CodeError> {
    let most = bounds.bytes_max + bounds.entries_max * OVERHEAD_BYTES_PER_ENTRY;
    // A few kilobytes can unpack to terabytes: the reader itself ends.
    let mut archive = Archive::new(GzDecoder::new(archive).take(most));
    let mut unpacking = Unpacking { folder, bounds, entries: 0, unpacked: Unpacked::default() };
    let mut extensions = Extensions::default();
    for entry in archive.entries().map_err(|error| broken(&error))?.raw(true) {
        let mut entry = entry.map_err(|error| broken(&error))?;
        unpacking.count(1)?;
        let kind = entry.header().entry_type();
        if extensions.take(kind, &mut entry)? {
            continue;
        }
        let described = std::mem::take(&mut extensions);
        described.agree_with(entry.size())?;
        let path = match described.path {
            Some(path) => inner_path(Path::new(OsStr::from_bytes(&path)))?,
            None => inner_path(&entry.path().map_err(|error| broken(&error))?)?,
        };
        let runs = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
        unpacking.add(kind, &path, runs, &mut entry)?;
    }
    if !extensions.is_empty() {
        return Err(unusable("the archive ends before the entry that its last name is for"));
    }
    if unpacking.unpacked.files == 0 {
        return Err(unusable("the archive has no files"));
    }
    sync_folders(folder).map_err(|error| of_disk(folder, &error))?;
    Ok(unpacking.unpacked)
}

/// An archive that is being unpacked.
struct Unpacking<'a> {
    folder: &'a Path,
    bounds: Bounds,
    entries: u64,
    unpacked: Unpacked,
}

impl Unpacking<'_> {
    fn count(&mut self, entries: u64) -> Result<(), CodeError> {
        self.entries += entries;
        if self.entries > self.bounds.entries_max {
            return Err(unusable(format!("the archive has more than {} entries", self.bounds.entries_max)));
        }
        Ok(())
    }

    fn add(
        &mut self,
        kind: EntryType,
        path: &Path,
        runs: bool,
        content: &mut impl Read,
    ) -> Result<(), CodeError> {
        let at = self.folder.join(path);
        match kind {
            EntryType::Directory => self.make_dirs(&at)?,
            EntryType::Regular => {
                if let Some(parent) = at.parent() {
                    self.make_dirs(parent)?;
                }
                let left = self.bounds.bytes_max - self.unpacked.bytes;
                self.unpacked.bytes += write(content, &at, runs, left)?;
                self.unpacked.files += 1;
            }
            other => {
                let text = format!("`{}` is neither a file nor a folder ({other:?})", path.display());
                return Err(unusable(text));
            }
        }
        Ok(())
    }

    /// Makes a folder and those above it; each one counts.
    fn make_dirs(&mut self, path: &Path) -> Result<(), CodeError> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|at| *at != self.folder && !at.is_dir()).collect();
        self.count(missing.len() as u64)?;
        for at in missing.into_iter().rev() {
            DirBuilder::new().mode(0o700).create(at).map_err(|error| of_disk(at, &error))?;
        }
        Ok(())
    }
}

/// A path below the folder: no `..`, no root, and no name that could not be shown.
fn inner_path(path: &Path) -> Result<PathBuf, CodeError> {
    let mut inner = PathBuf::new();
    for (depth, part) in path.components().enumerate() {
        if depth >= DEPTH_MAX {
            return Err(unusable(format!("the archive has more than {DEPTH_MAX} folders within each other")));
        }
        match part {
            Component::Normal(name) if name.to_str().is_some_and(|name| !name.contains(char::is_control)) => {
                inner.push(name);
            }
            Component::CurDir => {}
            _ => {
                return Err(unusable(format!(
                    "`{}` is not a path below the folder",
                    path.display().to_string().escape_debug()
                )));
            }
        }
    }
    Ok(inner)
}

/// Writes one new file of at most `left` bytes to the disk; the same name twice is refused.
fn write(entry: &mut impl Read, path: &Path, runs: bool, left: u64) -> Result<u64, CodeError> {
    let mode = if runs { 0o700 } else { 0o600 };
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|error| of_disk(path, &error))?;
    let written = io::copy(&mut entry.take(left + 1), &mut file).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            broken(&error)
        }
        _ => of_disk(path, &error),
    })?;
    if written > left {
        return Err(unusable("the files of the archive are too large; fetch models when the worker starts"));
    }
    file.sync_all().map_err(|error| of_disk(path, &error))?;
    Ok(written)
}

/// Writes the names in a folder and in those below to the disk.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

pub(super) fn unusable(text: impl Into<String>) -> CodeError {
    CodeError::Unusable(text.into())
}

pub(super) fn broken(error: &io::Error) -> CodeError {
    unusable(format!("this is not a whole gzipped tar archive: {error}"))
}

/// A name that the archive has twice, or a file where it has a folder, is the archive's mistake; the rest is the
/// disk's.
fn of_disk(path: &Path, error: &io::Error) -> CodeError {
    let name = path.file_name().unwrap_or_default().display().to_string();
    match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            unusable(format!("`{name}` is in the archive twice"))
        }
        io::ErrorKind::InvalidFilename => unusable(format!("`{name}` is too long for a name")),
        _ => CodeError::Unavailable(format!("cannot write `{name}`: {error}")),
    }
}

/// Removes what an archive became.
pub(super) fn remove(folder: &Path) {
    // What is left is found and replaced by the next version of the same hash.
    let _ = fs::remove_dir_all(folder);
}
