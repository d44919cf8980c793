//! Unpacks an untrusted archive. Only files and directories below the target are accepted.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Take};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use longshore_http::CodeError;
use tar::{Archive, EntryType};

use super::extensions::Extensions;

/// Limits of an unpacked archive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of all files together; every entry also counts one block.
    pub(super) bytes_max: u64,
    /// Number of files, directories (also those that only occur in paths) and entries that describe others.
    pub(super) entries_max: u64,
}

impl Bounds {
    /// Returns a reader of a gzipped archive. A few kilobytes can unpack to terabytes, so the reader ends at the bounds.
    fn reader(self, archive: &[u8]) -> Archive<Take<GzDecoder<&[u8]>>> {
        let most = self.bytes_max + self.entries_max * OVERHEAD_BYTES_PER_ENTRY;
        Archive::new(GzDecoder::new(archive).take(most))
    }

    /// Refuses more than `entries_max` entries.
    fn allow(self, entries: u64) -> Result<(), CodeError> {
        if entries > self.entries_max {
            return Err(unusable(format!("the archive has more than {} entries", self.entries_max)));
        }
        Ok(())
    }
}

/// Limits of deployed code: far above a handler, far below a disk.
pub(super) const BOUNDS: Bounds = Bounds { bytes_max: 512_000_000, entries_max: 20_000 };

/// Bytes that one entry may add for headers and padding; bounds an archive of nothing else.
const OVERHEAD_BYTES_PER_ENTRY: u64 = 4_096;
/// Depth of nested directories. Removing and comparing them recurses once per level.
const DEPTH_MAX: usize = 64;

/// Size of what was unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unpacked {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Unpacks `archive` into the empty `folder` and syncs it to the disk. Memory use is bounded by a few pages for any
/// archive: long names and extended headers are read here, because the tar library reads any length.
pub(super) fn unpack(archive: &[u8], folder: &Path, bounds: Bounds) -> Result<Unpacked, CodeError> {
    count_entries(archive, bounds)?;
    let mut archive = bounds.reader(archive);
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
        return Err(unusable("the archive ends after a long name without its entry"));
    }
    if unpacking.unpacked.files == 0 {
        return Err(unusable("the archive has no files"));
    }
    sync_folders(folder).map_err(|error| of_disk(folder, &error))?;
    Ok(unpacking.unpacked)
}

/// Refuses an archive with too many entries before a file is written: a sync of each file takes milliseconds. An archive
/// that cannot be read to its end is left to the reader that unpacks it, which knows the cause.
fn count_entries(archive: &[u8], bounds: Bounds) -> Result<(), CodeError> {
    let mut archive = bounds.reader(archive);
    let entries = archive.entries().map_err(|error| broken(&error))?.raw(true);
    let readable = entries.take_while(Result::is_ok).take(1 + bounds.entries_max as usize);
    bounds.allow(readable.count() as u64)
}

/// The state of unpacking one archive.
struct Unpacking<'a> {
    folder: &'a Path,
    bounds: Bounds,
    entries: u64,
    unpacked: Unpacked,
}

impl Unpacking<'_> {
    fn count(&mut self, entries: u64) -> Result<(), CodeError> {
        self.entries += entries;
        self.bounds.allow(self.entries)
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
            EntryType::Regular if path.as_os_str().is_empty() => {
                return Err(unusable("an entry of the archive has no name"));
            }
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

    /// Creates a directory and its parents. Each one counts as an entry.
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

/// Checks that a path stays below the target: no `..`, no root, valid UTF-8.
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

/// Writes and syncs one new file of at most `left` bytes. A second file of the same name is refused.
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

/// Syncs a directory and all directories below it.
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
    unusable(format!("not a complete gzipped tar archive: {error}"))
}

/// Distinguishes errors of the archive (a duplicate name, a file where it has a directory) from errors of the disk.
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

/// Removes an unpacked archive.
pub(super) fn remove(folder: &Path) {
    // A leftover is found and replaced by the next upload of the same version.
    let _ = fs::remove_dir_all(folder);
}
