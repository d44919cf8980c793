//! Large reads and writes of files past the page cache (`O_DIRECT`).
//!
//! Half a mebibyte, written and synced, takes half the processor time this way. Below about 64 KiB the page cache is
//! faster: its pages are written by the sync, which is waited for in both cases.
//!
//! Not every file system supports `O_DIRECT`. Each operation reports that, and the caller then uses the page cache.

mod pages;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

pub use pages::{PAGE_BYTES, Pages};

/// One file, opened for reads or writes past the page cache. Unusable if the file system does not support that.
#[derive(Debug)]
pub struct Direct {
    file: Option<File>,
}

impl Direct {
    /// Opens the file at this path for writing.
    #[must_use]
    pub fn to_write(path: &Path) -> Self {
        Self::open(File::options().write(true), path)
    }

    /// Opens the file at this path for reading.
    #[must_use]
    pub fn to_read(path: &Path) -> Self {
        Self::open(File::options().read(true), path)
    }

    fn open(options: &mut OpenOptions, path: &Path) -> Self {
        Self { file: options.custom_flags(OFlags::DIRECT.bits().cast_signed()).open(path).ok() }
    }

    /// Writes the whole pages of a [`Pages`] at offset `at`, a multiple of [`PAGE_BYTES`]. Returns `false` if the file
    /// system does not support the write; a part of the pages may then be written.
    ///
    /// # Errors
    /// Any other error of the write.
    pub fn write(&mut self, pages: &[u8], at: u64) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let written = file.write_all_at(pages, at);
        Ok(self.if_possible(written)?.is_some())
    }

    /// Reads from the start of the file until `pages` are full or the file ends. Returns the number of bytes; `None` if
    /// the file system does not support the read.
    ///
    /// # Errors
    /// Any other error of the read.
    pub fn read(&mut self, pages: &mut Pages) -> io::Result<Option<usize>> {
        let Some(file) = &self.file else { return Ok(None) };
        let read = read_to_end(file, pages.bytes_mut());
        self.if_possible(read)
    }

    fn if_possible<T>(&mut self, done: io::Result<T>) -> io::Result<Option<T>> {
        match done {
            // The disk has larger sectors, or the file system accepts the flag but not the operation.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                self.file = None;
                Ok(None)
            }
            done => done.map(Some),
        }
    }
}

fn read_to_end(file: &File, pages: &mut [u8]) -> io::Result<usize> {
    let mut at = 0;
    while at < pages.len() {
        match file.read_at(&mut pages[at..], at as u64) {
            Ok(0) => break,
            Ok(read) => at += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        // A partial page is the end of the file. A read from an unaligned offset would fail.
        if at % PAGE_BYTES != 0 {
            break;
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_and_direct_reads_see_each_others_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let cached = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        cached.write_all_at(&[1; 3 * PAGE_BYTES + 5], 0).unwrap();
        let mut pages = Pages::default();
        pages.begin(2 * PAGE_BYTES).extend_from_slice(&[2; 2 * PAGE_BYTES]);
        // Some file systems, such as older ones in memory, do not support it: then nothing is written.
        let is_possible = Direct::to_write(&path).write(pages.bytes(), PAGE_BYTES as u64).unwrap();
        let expected = if is_possible { 2 } else { 1 };
        let mut read = [0; 3 * PAGE_BYTES + 5];
        cached.read_exact_at(&mut read, 0).unwrap();
        assert!(read[PAGE_BYTES..3 * PAGE_BYTES].iter().all(|&byte| byte == expected));
        let rest = read.iter().enumerate().filter(|(at, _)| !(PAGE_BYTES..3 * PAGE_BYTES).contains(at));
        assert!(rest.clone().count() == PAGE_BYTES + 5 && rest.clone().all(|(_, &byte)| byte == 1));
        pages.begin(read.len());
        pages.fill(read.len());
        if let Some(bytes) = Direct::to_read(&path).read(&mut pages).unwrap() {
            assert_eq!(pages.into_bytes(bytes), read[..]);
        }
    }

    #[test]
    fn an_unsupported_operation_is_reported_and_not_retried() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap();
        let mut direct = Direct::to_write(&path);
        assert!(!direct.write(&[1; 100], 0).unwrap());
        assert!(direct.file.is_none());
        assert!(!Direct::to_write(&folder.path().join("none")).write(&[1; 100], 0).unwrap());
        assert_eq!(Direct::to_read(&folder.path().join("none")).read(&mut Pages::default()).unwrap(), None);
    }
}
