//! A worker's log on disk: rotated files with the times of their bytes.
//!
//! Beside each file `log` a file `log.times` has pairs of an offset and of ms since 1970, both as little endian `u64`:
//! bytes from the offset on were printed at that time or later. There is at most one pair in 100 ms.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// The limits of one worker's log files.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RotationLimits {
    /// The size in bytes at which a file is renamed and a new one created.
    pub file_bytes_max: u64,
    /// The largest number of files, including the one that is written.
    pub files_max: u32,
}

impl Default for RotationLimits {
    fn default() -> Self {
        Self { file_bytes_max: 10_000_000, files_max: 3 }
    }
}

/// The file being written, and its predecessors `<path>.1`, `<path>.2` …, youngest first.
pub struct RotatedLog {
    path: PathBuf,
    limits: RotationLimits,
    file: File,
    bytes: u64,
    /// `None` if the file of times cannot be written.
    times: Option<File>,
    /// The last time in it, in ms.
    timed_at: u64,
}

/// The shortest distance of two times in a log, in ms.
const TIMES_MS: u64 = 100;
/// The end of the name of a file of times.
const TIMES: &str = "times";

impl RotatedLog {
    /// Continues the file at `path`, or creates it.
    ///
    /// # Errors
    ///
    /// The file could not be opened.
    pub fn open(path: &Path, limits: RotationLimits) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        let times = File::options().create(true).append(true).open(path.with_added_extension(TIMES)).ok();
        Ok(Self { path: path.to_owned(), limits, file, bytes, times, timed_at: 0 })
    }

    /// The size of the present file in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds `bytes` to the file. Before, renames a file that would become too long.
    ///
    /// # Errors
    ///
    /// The bytes could not be written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + bytes.len() as u64 > self.limits.file_bytes_max {
            self.rotate()?;
        }
        self.note_time();
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Stores the present time of the next byte.
    fn note_time(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
        if now.abs_diff(self.timed_at) < TIMES_MS {
            return;
        }
        self.timed_at = now;
        let pair = [self.bytes.to_le_bytes(), now.to_le_bytes()].concat();
        // Lines without a time are better than none.
        if self.times.as_mut().is_some_and(|times| times.write_all(&pair).is_err()) {
            self.times = None;
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.limits.files_max).rev() {
            let from = if number == 1 { self.path.clone() } else { numbered(&self.path, number - 1) };
            if from.exists() {
                let to = numbered(&self.path, number);
                let _ = fs::rename(from.with_added_extension(TIMES), to.with_added_extension(TIMES));
                fs::rename(from, to)?;
            }
        }
        self.file = File::create(&self.path)?;
        self.times = File::create(self.path.with_added_extension(TIMES)).ok();
        (self.bytes, self.timed_at) = (0, 0);
        Ok(())
    }
}

pub(crate) fn numbered(path: &Path, number: u32) -> PathBuf {
    path.with_added_extension(number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_tail::tail;

    #[test]
    fn a_full_file_is_renamed_and_the_oldest_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = RotatedLog::open(&path, RotationLimits { file_bytes_max: 10, files_max: 3 }).unwrap();
        for line in ["aaaaaaa\n", "bbbbbbb\n", "ccccccc\n", "ddddddd\n"] {
            log.write(line.as_bytes()).unwrap();
        }
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        assert_eq!(
            [read("log"), read("log.1"), read("log.2"), read("log.3")],
            ["ddddddd\n", "ccccccc\n", "bbbbbbb\n", ""]
        );
        assert_eq!(tail(&path), "ccccccc\nddddddd");
        let times = fs::read(dir.path().join("log.times")).unwrap();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        assert!(times.len() == 16 && number(&times[..8]) == 0 && now - number(&times[8..]) < 60_000);
        assert!(dir.path().join("log.2.times").exists() && !dir.path().join("log.3.times").exists());
    }
}
