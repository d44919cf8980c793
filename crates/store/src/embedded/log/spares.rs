//! Spares: files of removed segments, kept for reuse.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::names;

/// Spares that are kept; further files are removed. Two, because a segment is filled while the oldest one is emptied.
const SPARES_MAX: usize = 2;

/// Creates and keeps spares. A write to a reused file does not change the file's length, which makes its sync cheaper.
#[derive(Debug)]
pub(in crate::embedded) struct Spares {
    dir: PathBuf,
    free: Vec<Spare>,
    next: u64,
}

/// A file to make a segment from.
#[derive(Debug)]
pub(in crate::embedded) struct Spare {
    /// The file, open for reading and writing.
    pub file: File,
    /// The file's full path.
    pub path: PathBuf,
}

impl Spares {
    /// Starts without spares, in the directory `dir`.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), free: Vec::new(), next: 1 }
    }

    /// Returns a spare, or a new file. Only the server's user may read the file: it will have inputs and secrets.
    pub fn take(&mut self) -> io::Result<Spare> {
        if let Some(spare) = self.free.pop() {
            return Ok(spare);
        }
        let path = self.path();
        // A file with this name is left of a failed attempt.
        let file =
            File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        Ok(Spare { file, path })
    }

    /// Removes the segment with this number. `file` is the open file if no reader has it open: it is kept as a spare if
    /// fewer than [`SPARES_MAX`] are and it has at most `bytes_max` bytes.
    pub fn retire(&mut self, number: u64, file: Option<File>, bytes_max: u64) -> io::Result<()> {
        let from = self.dir.join(names::segment(number));
        match file {
            Some(file) if self.free.len() < SPARES_MAX && file.metadata()?.len() <= bytes_max => {
                let path = self.path();
                fs::rename(from, &path)?;
                self.free.push(Spare { file, path });
                Ok(())
            }
            _ => fs::remove_file(from),
        }
    }

    fn path(&mut self) -> PathBuf {
        let path = self.dir.join(names::spare(self.next));
        self.next += 1;
        path
    }
}
