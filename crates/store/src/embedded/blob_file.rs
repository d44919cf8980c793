//! The files of large payloads: paths and checks, for verify, scrub and salvage.

use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Advice, fadvise};

use crate::BlobCheck;

/// The directory of large payloads in a data directory.
pub(super) const BLOBS: &str = "blobs";

/// Bytes per read.
const PIECE_BYTES: usize = 1 << 20;

/// Reads a large payload and compares it with its length and checksum. Returns the number of bytes read.
///
/// # Errors
/// What is wrong with the payload.
pub(super) fn check_blob(folder: &Path, name: &str, bytes: u64) -> Result<u64, String> {
    let path = blob_path(folder, name).ok_or("not a name of a payload")?;
    let mut check = BlobCheck::new(name, bytes);
    let read = read_pieces(&path, |piece| check.add(piece));
    let read = read.map_err(|error| format!("the payload cannot be read: {error}"))?;
    check.end().map_err(|what| format!("the payload {what}")).map(|()| read)
}

/// Returns the path of a large payload; `None` if its name leads out of the directory.
pub(super) fn blob_path(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    (is_inside && !name.is_empty()).then(|| folder.join(name))
}

fn read_pieces(path: &Path, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
    let mut file = File::open(path)?;
    drop_from_memory(&file, 0, file.metadata()?.len());
    let (mut piece, mut bytes) = (vec![0; PIECE_BYTES], 0);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            read => {
                take(&piece[..read]);
                bytes += read as u64;
            }
        }
    }
}

/// Drops a range of a file from the page cache, so that it is read from the disk. A failure is ignored: the range is then
/// read from memory.
pub(super) fn drop_from_memory(file: &File, at: u64, bytes: u64) {
    if let Some(bytes) = NonZeroU64::new(bytes) {
        let _ = fadvise(file, at, Some(bytes), Advice::DontNeed);
    }
}
