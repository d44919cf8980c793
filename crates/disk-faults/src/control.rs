//! Saying what fails.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// As `CONTROL_BYTES` in `disk.c`.
const BYTES: usize = 256;

/// A control file. It outlives the program that is controlled, or not: both are fine.
#[derive(Debug)]
pub struct Control(File);

impl Control {
    /// Creates the file, with nothing failing.
    pub fn create(path: &Path) -> io::Result<Self> {
        let control = Self(File::create(path)?);
        control.say("")?;
        Ok(control)
    }

    /// Opens one that is there.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::options().write(true).open(path).map(Self)
    }

    /// From now on these operations fail, and no others: lines as described in `disk.c`, such as `sync EIO .db-wal`.
    pub fn say(&self, lines: &str) -> io::Result<()> {
        let mut bytes = [0; BYTES];
        let text = bytes.get_mut(..lines.len()).ok_or(io::ErrorKind::InvalidInput)?;
        text.copy_from_slice(lines.as_bytes());
        self.0.write_all_at(&bytes, 0)
    }
}
