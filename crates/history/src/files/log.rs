//! A file that grows by a block at a time. What a failed write or a killed server left of a block at its end is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::block::{Block, RawBlock};

/// The first bytes of a log. The digit is the version of the format.
const MAGIC: &[u8; 16] = b"longshore-hlog1\n";

/// Appends blocks to logs.
#[derive(Debug, Default)]
pub(super) struct Appender {
    /// The logs that could not be cut after a failed write, with the length of what was there before it, in bytes.
    uncut: BTreeMap<PathBuf, u64>,
}

impl Appender {
    /// Appends all of these blocks or none. Does not sync them: a power cut may lose the last ones. Makes the file if there
    /// is none.
    ///
    /// # Errors
    ///
    /// The blocks could not be written.
    pub(super) fn append(&mut self, path: &Path, blocks: &[Block]) -> io::Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut len = file.metadata()?.len();
        if let Some(whole) = self.uncut.get(path).filter(|whole| **whole < len) {
            file.set_len(*whole)?;
            len = *whole;
        }
        self.uncut.remove(path);
        let mut bytes = Vec::new();
        if len == 0 {
            bytes.extend(MAGIC);
        }
        for block in blocks {
            bytes.extend(block.encode());
        }
        let written = file.write_all(&bytes);
        // Readers stop at a part of a block, so that it would hide what is appended behind it.
        if written.is_err() && file.set_len(len).is_err() {
            self.uncut.insert(path.to_owned(), len);
        }
        written
    }
}

/// Cuts a log after its last whole block, so that the next one can follow.
///
/// # Errors
///
/// `InvalidData` if the file is no log, and I/O errors.
pub(super) fn repair(path: &Path) -> io::Result<()> {
    let bytes = fs::read(path)?;
    let len = whole(&bytes)?;
    if len < bytes.len() {
        tracing::warn!(path = %path.display(), bytes = bytes.len() - len, "end of history dropped, it was cut off");
        File::options().write(true).open(path)?.set_len(len as u64)?;
    }
    Ok(())
}

/// Calls `each` with the blocks of a log, in order. Bytes after the last whole block are left out.
///
/// # Errors
///
/// `InvalidData` if the file is no log, and I/O errors.
pub(super) fn read(path: &Path, mut each: impl FnMut(RawBlock<'_>)) -> io::Result<()> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => bytes?,
    };
    let mut rest = content(&bytes)?;
    while let Some(block) = RawBlock::take(&mut rest) {
        each(block);
    }
    Ok(())
}

/// The length up to the end of the last whole block.
fn whole(bytes: &[u8]) -> io::Result<usize> {
    let mut rest = content(bytes)?;
    if bytes.len() < MAGIC.len() {
        return Ok(0);
    }
    while RawBlock::take(&mut rest).is_some() {}
    Ok(bytes.len() - rest.len())
}

/// The bytes of the blocks. A server that was killed at the first write left the start of the magic bytes, and no block.
fn content(bytes: &[u8]) -> io::Result<&[u8]> {
    if bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes) {
        return Ok(&[]);
    }
    bytes
        .strip_prefix(MAGIC)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a log of history"))
}
