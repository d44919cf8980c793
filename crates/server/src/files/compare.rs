//! Compares stored code with an uploaded archive.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Bytes compared per read.
const PIECE_BYTES: usize = 64 << 10;

/// Whether `kept` has every file and directory of `sent`, with the same content. Additional files are ignored,
/// because Python writes compiled modules.
pub(super) fn has_all(kept: &Path, sent: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(sent)? {
        let entry = entry?;
        let (kept, sent) = (kept.join(entry.file_name()), entry.path());
        let facts = match fs::symlink_metadata(&kept) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(false);
            }
            facts => facts?,
        };
        let expected = entry.metadata()?;
        let is_same = if expected.is_dir() {
            facts.is_dir() && has_all(&kept, &sent)?
        } else {
            facts.is_file()
                && facts.len() == expected.len()
                && facts.permissions().mode() == expected.permissions().mode()
                && has_same_bytes(&kept, &sent)?
        };
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut left, mut right) = (vec![0; PIECE_BYTES], vec![0; PIECE_BYTES]);
    loop {
        let bytes = one.read(&mut left)?;
        if bytes == 0 {
            return Ok(other.read(&mut right)? == 0);
        }
        match other.read_exact(&mut right[..bytes]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if left[..bytes] != right[..bytes] {
            return Ok(false);
        }
    }
}
