//! A worker's log on disk: rotated files, and the last lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

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
pub(crate) struct RotatedLog {
    path: PathBuf,
    limits: RotationLimits,
    file: File,
    bytes: u64,
}

impl RotatedLog {
    pub(crate) fn open(path: &Path, limits: RotationLimits) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), limits, file, bytes })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + bytes.len() as u64 > self.limits.file_bytes_max {
            self.rotate()?;
        }
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.limits.files_max).rev() {
            let from = if number == 1 { self.path.clone() } else { numbered(&self.path, number - 1) };
            if from.exists() {
                fs::rename(from, numbered(&self.path, number))?;
            }
        }
        self.file = File::create(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    path.with_added_extension(number.to_string())
}

/// The largest tail, in lines and bytes.
const TAIL_BYTES_MAX: usize = 4 * 1024;
const TAIL_LINES_MAX: usize = 20;

/// The last lines of a log; empty without a log.
pub(crate) fn tail(path: &Path) -> String {
    let mut bytes = last_bytes(path, TAIL_BYTES_MAX);
    if bytes.len() < TAIL_BYTES_MAX {
        let mut before = last_bytes(&numbered(path, 1), TAIL_BYTES_MAX - bytes.len());
        before.append(&mut bytes);
        bytes = before;
    }
    // A character that is cut at the beginning would become a longer replacement character.
    let cut = bytes.iter().take(3).take_while(|&&byte| byte & 0b1100_0000 == 0b1000_0000).count();
    let text = String::from_utf8_lossy(&bytes[cut..]);
    // Bytes that are no text grow when they become replacement characters.
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES_MAX))..];
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES_MAX)..].join("\n")
}

fn last_bytes(path: &Path, most: usize) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let skip = file.metadata()?.len().saturating_sub(most as u64);
        file.seek(SeekFrom::Start(skip))?;
        let mut bytes = Vec::with_capacity(most);
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // An unreadable file counts as missing.
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn a_tail_has_at_most_twenty_lines_and_four_kib_of_valid_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(tail(&path), "");
        fs::write(&path, (0..50).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n")).unwrap();
        let lines = tail(&path);
        assert_eq!(
            (lines.lines().count(), lines.lines().next(), lines.lines().last()),
            (20, Some("line 30"), Some("line 49"))
        );
        fs::write(&path, "é".repeat(5_000) + "x").unwrap();
        let text = tail(&path);
        assert!(text.len() <= TAIL_BYTES_MAX && text.starts_with('é'), "{text}");
        fs::write(&path, b"bad \xff byte\n").unwrap();
        assert_eq!(tail(&path), "bad \u{fffd} byte");
        fs::write(&path, [0xff; 5_000]).unwrap();
        assert!((TAIL_BYTES_MAX - 3..=TAIL_BYTES_MAX).contains(&tail(&path).len()));
    }
}
