//! Files to make segments from, and the end of those that are needed no more.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::names;

/// More are removed. One is filled while the oldest is emptied.
const SPARES_MAX: usize = 2;

/// Files that were segments. They are written already, so that writing to them changes no file's length.
#[derive(Debug)]
pub(in crate::embedded) struct Spares {
    dir: PathBuf,
    free: Vec<Spare>,
    next: u64,
}

/// A file that is no segment.
#[derive(Debug)]
pub(in crate::embedded) struct Spare {
    /// The file, open for reading and writing.
    pub file: File,
    /// Its name.
    pub path: PathBuf,
}

impl Spares {
    /// None at first, in this folder.
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), free: Vec::new(), next: 1 }
    }

    /// One that was kept, or a new file. What is in it for the server's user alone: inputs, environments, secrets.
    pub fn take(&mut self) -> io::Result<Spare> {
        if let Some(spare) = self.free.pop() {
            return Ok(spare);
        }
        let path = self.path();
        // What bears the name was left by an earlier attempt.
        let file =
            File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        Ok(Spare { file, path })
    }

    /// Removes the segment with this number, whose file nobody else has open if it is handed in: it may be kept.
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
