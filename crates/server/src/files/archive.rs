//! Unpacks an archive that came from outside: files and folders, and nothing that leads out of the folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use longshore_http::CodeError;
use tar::{Archive, EntryType};

/// What an archive may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of all files together; every entry counts as a block besides.
    pub(super) bytes_max: u64,
    /// Files and folders.
    pub(super) entries_max: u64,
}

/// Far more than a handler has, far less than a disk.
pub(super) const BOUNDS: Bounds = Bounds { bytes_max: 512_000_000, entries_max: 20_000 };

/// Headers and padding count, too: an archive of nothing but those would be read without an end.
const OVERHEAD_BYTES_PER_ENTRY: u64 = 4_096;

/// What was unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unpacked {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Unpacks `archive` into `folder`, which is empty.
pub(super) fn unpack(archive: &[u8], folder: &Path, bounds: Bounds) -> Result<Unpacked, CodeError> {
    let most = bounds.bytes_max + bounds.entries_max * OVERHEAD_BYTES_PER_ENTRY;
    // A few kilobytes can unpack to terabytes: the reader itself ends.
    let mut archive = Archive::new(GzDecoder::new(archive).take(most));
    let mut unpacked = Unpacked::default();
    let mut entries = 0;
    for entry in archive.entries().map_err(|error| broken(&error))? {
        let mut entry = entry.map_err(|error| broken(&error))?;
        entries += 1;
        if entries > bounds.entries_max {
            return Err(unusable(format!("the archive has more than {} entries", bounds.entries_max)));
        }
        let kind = entry.header().entry_type();
        let path = inner_path(&entry.path().map_err(|error| broken(&error))?)?;
        let at = folder.join(&path);
        match kind {
            EntryType::Directory => make_dir(&at)?,
            EntryType::Regular => {
                if let Some(parent) = at.parent() {
                    make_dir(parent)?;
                }
                let runs = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
                let left = bounds.bytes_max - unpacked.bytes;
                unpacked.bytes += write(&mut entry, &at, runs, left)?;
                unpacked.files += 1;
            }
            other => {
                let text = format!("`{}` is neither a file nor a folder ({other:?})", path.display());
                return Err(unusable(text));
            }
        }
    }
    if unpacked.files == 0 {
        return Err(unusable("the archive has no files"));
    }
    Ok(unpacked)
}

/// A path below the folder: no `..`, no root, and no name that could not be shown.
fn inner_path(path: &Path) -> Result<PathBuf, CodeError> {
    let mut inner = PathBuf::new();
    for part in path.components() {
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

fn make_dir(path: &Path) -> Result<(), CodeError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| of_disk(path, &error))
}

/// Writes one new file of at most `left` bytes; the same name twice is refused.
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
    Ok(written)
}

fn unusable(text: impl Into<String>) -> CodeError {
    CodeError::Unusable(text.into())
}

fn broken(error: &io::Error) -> CodeError {
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
