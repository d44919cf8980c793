//! The lines of one worker's log files, from the newest or from the oldest one, with the times at which they were printed.
//!
//! A log `log` has its predecessors `log.1`, `log.2`, and beside each a file `log.times`: pairs of an offset and of ms since
//! 1970, both as little endian `u64`. Bytes from the offset on were printed at that time or later.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::forward::ForwardLog;

/// Bytes that are read together.
pub(super) const PIECE_BYTES: u64 = 64 * 1024;
/// A longer line is cut.
pub(super) const LINE_BYTES_MAX: usize = 16 * 1024;
/// Predecessors of a log; more are not looked for.
const FILES_MAX: u32 = 10;

/// A line of a worker's output, with the time when it was printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// When it was printed, in ms since 1970; `None` if that was not stored.
    pub(super) at: Option<u64>,
    pub(super) worker: String,
    /// Where it begins in its file.
    pub(super) offset: u64,
    pub(super) text: String,
}

impl Line {
    /// What lines are ordered by.
    pub(super) fn key(&self) -> (u64, &str, u64) {
        (self.at.unwrap_or(0), &self.worker, self.offset)
    }

    /// An id that tells the line from others of the endpoint.
    pub(super) fn id(&self) -> String {
        format!("{}.{}.{}", self.at.unwrap_or(0), self.offset, self.worker)
    }
}

/// The end of a log at which reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadFrom {
    /// The newest line is the first. Those after `last_ms` are not wanted.
    End { last_ms: u64 },
    /// The oldest line is the first. Those before `first_ms` are not wanted.
    Start { first_ms: u64 },
}

/// The lines of one worker.
pub(super) struct WorkerLines {
    worker: String,
    /// Files that are not read yet, the next one last.
    files: Vec<PathBuf>,
    present: Option<OpenLog>,
    from: ReadFrom,
    /// Bytes that were read.
    pub(super) scanned_bytes: u64,
}

/// A file that is read.
enum OpenLog {
    Backward(BackwardLog),
    Forward(ForwardLog),
}

/// A file, read from its end.
struct BackwardLog {
    file: File,
    times: Vec<(u64, u64)>,
    /// Where `rest` begins in the file.
    start: u64,
    /// Bytes that are read and not returned; they end with a whole line.
    rest: Vec<u8>,
}

impl WorkerLines {
    /// The lines of the log at this path, without most of those that are not wanted for their time.
    pub(super) fn open(worker: String, path: &Path, from: ReadFrom) -> Self {
        let older = (1..FILES_MAX).map(|number| path.with_added_extension(number.to_string()));
        let mut files: Vec<PathBuf> =
            std::iter::once(path.to_owned()).chain(older.take_while(|path| path.is_file())).collect();
        if let ReadFrom::End { .. } = from {
            files.reverse();
        }
        Self { worker, files, present: None, from, scanned_bytes: 0 }
    }

    /// The line that follows those that were returned, in the order of reading. A file that cannot be read has none.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            if self.present.is_none() {
                let path = self.files.pop()?;
                self.present = OpenLog::open(&path, self.from).ok();
            }
            let Some(log) = &mut self.present else { continue };
            match log.next_line(&mut self.scanned_bytes) {
                Some((offset, text)) => {
                    let at = time_at(log.times(), offset);
                    return Some(Line { at, worker: self.worker.clone(), offset, text });
                }
                None => self.present = None,
            }
        }
    }
}

impl OpenLog {
    fn open(path: &Path, from: ReadFrom) -> io::Result<Self> {
        Ok(match from {
            ReadFrom::End { last_ms } => Self::Backward(BackwardLog::open(path, last_ms)?),
            ReadFrom::Start { first_ms } => Self::Forward(ForwardLog::open(path, first_ms)?),
        })
    }

    /// Takes the next line: its offset and its text without the line end. Adds the bytes that are read for it to `scanned`.
    fn next_line(&mut self, scanned: &mut u64) -> Option<(u64, String)> {
        match self {
            Self::Backward(log) => {
                let before = log.start;
                let found = log.last_line();
                *scanned += before - log.start;
                found
            }
            Self::Forward(log) => log.next_line(scanned),
        }
    }

    fn times(&self) -> &[(u64, u64)] {
        match self {
            Self::Backward(log) => &log.times,
            Self::Forward(log) => &log.times,
        }
    }
}

impl BackwardLog {
    fn open(path: &Path, last_ms: u64) -> io::Result<Self> {
        // The times are read first: later ones are of bytes that are not read.
        let times = times_of(path);
        let mut file = File::open(path)?;
        let len = file.seek(SeekFrom::End(0))?;
        let unwanted = times.iter().find(|(_, ms)| *ms > last_ms).map(|(offset, _)| *offset);
        Ok(Self { file, times, start: unwanted.unwrap_or(len).min(len), rest: Vec::new() })
    }

    /// Takes the last line: its offset and its text without the line end.
    fn last_line(&mut self) -> Option<(u64, String)> {
        loop {
            let end = self.rest.strip_suffix(b"\n").map_or(self.rest.len(), <[u8]>::len);
            if let Some(at) = self.rest[..end].iter().rposition(|byte| *byte == b'\n') {
                let text = text_of(&self.rest[at + 1..end]);
                self.rest.truncate(at + 1);
                return Some((self.start + at as u64 + 1, text));
            }
            if self.start == 0 {
                if self.rest.is_empty() {
                    return None;
                }
                let text = text_of(&self.rest[..end]);
                self.rest.clear();
                return Some((0, text));
            }
            self.read_more().ok()?;
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let len = PIECE_BYTES.min(self.start);
        self.file.seek(SeekFrom::Start(self.start - len))?;
        let mut piece = vec![0; len as usize];
        self.file.read_exact(&mut piece)?;
        self.start -= len;
        // Only the start of a long line is shown, so its end need not stay.
        if self.rest.len() > 2 * LINE_BYTES_MAX && !self.rest[..self.rest.len() - 1].contains(&b'\n') {
            self.rest.truncate(LINE_BYTES_MAX);
        }
        piece.append(&mut self.rest);
        self.rest = piece;
        Ok(())
    }
}

/// When the byte at this offset was printed.
fn time_at(times: &[(u64, u64)], offset: u64) -> Option<u64> {
    let after = times.partition_point(|(from, _)| *from <= offset);
    Some(times[..after].last()?.1)
}

/// The text of a line, cut if it is long.
pub(super) fn text_of(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= LINE_BYTES_MAX {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let text = String::from_utf8_lossy(&bytes[..LINE_BYTES_MAX]);
    format!("{text}… (cut, the line is longer)")
}

/// The times of a log; none if they cannot be read.
pub(super) fn times_of(log: &Path) -> Vec<(u64, u64)> {
    let mut times = Vec::new();
    add_times(&mut times, &std::fs::read(times_path(log)).unwrap_or_default());
    times
}

/// Where the times of a log are.
pub(super) fn times_path(log: &Path) -> PathBuf {
    log.with_added_extension("times")
}

/// Adds the pairs in bytes of a file of times. Pairs out of order, and bytes that are no whole pair, are left out.
pub(super) fn add_times(times: &mut Vec<(u64, u64)>, bytes: &[u8]) {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    for pair in bytes.chunks_exact(16) {
        let (offset, ms) = (number(&pair[..8]), number(&pair[8..]));
        if times.last().is_none_or(|(last, last_ms)| offset >= *last && ms >= *last_ms) {
            times.push((offset, ms));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &Path, last_ms: u64) -> Vec<(Option<u64>, u64, String)> {
        read_towards(path, ReadFrom::End { last_ms })
    }

    fn read_towards(path: &Path, from: ReadFrom) -> Vec<(Option<u64>, u64, String)> {
        let mut lines = WorkerLines::open("w".to_owned(), path, from);
        std::iter::from_fn(|| lines.next()).map(|line| (line.at, line.offset, line.text)).collect()
    }

    fn times(pairs: &[(u64, u64)]) -> Vec<u8> {
        pairs.iter().flat_map(|(offset, ms)| [offset.to_le_bytes(), ms.to_le_bytes()]).flatten().collect()
    }

    #[test]
    fn lines_come_from_the_end_through_all_files_with_their_times() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text = (0..20_000).map(|number| format!("line {number}\n")).collect::<Vec<_>>().concat();
        std::fs::write(dir.path().join("log.1"), &text).unwrap();
        std::fs::write(dir.path().join("log.1.times"), times(&[(0, 1_000), (14, 2_000)])).unwrap();
        std::fs::write(&path, "a\n\nb\nhalf").unwrap();
        std::fs::write(dir.path().join("log.times"), times(&[(0, 3_000), (3, 4_000)])).unwrap();
        let lines = read(&path, u64::MAX);
        let named = |at, offset, text: &str| (Some(at), offset, text.to_owned());
        assert_eq!(
            lines[..4],
            [named(4_000, 5, "half"), named(4_000, 3, "b"), named(3_000, 2, ""), named(3_000, 0, "a")]
        );
        assert_eq!(lines.len(), 20_004);
        assert_eq!(lines[4].2, "line 19999");
        assert_eq!(
            lines[20_001..],
            [named(2_000, 14, "line 2"), named(1_000, 7, "line 1"), named(1_000, 0, "line 0")]
        );
        let mut forward = read_towards(&path, ReadFrom::Start { first_ms: 0 });
        forward.reverse();
        assert!(forward == lines, "the same lines in the other order");
        // Later lines are left out where the times tell, and earlier ones in the other order.
        assert_eq!(read_towards(&path, ReadFrom::Start { first_ms: 2_001 })[0], named(3_000, 0, "a"));
        assert_eq!(read_towards(&path, ReadFrom::Start { first_ms: 3_001 })[0], named(4_000, 3, "b"));
        assert_eq!(read_towards(&path, ReadFrom::Start { first_ms: 4_001 }), []);
        assert_eq!(read(&path, 3_500)[0], named(3_000, 2, ""));
        assert_eq!(read(&path, 1_500)[0], named(1_000, 7, "line 1"));
    }

    #[test]
    fn a_log_without_times_has_lines_and_a_long_line_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, format!("first\n{}\nlast\n", "x".repeat(300_000))).unwrap();
        let lines = read(&path, 5);
        assert_eq!((lines[0].2.as_str(), lines[2].2.as_str(), lines[0].0), ("last", "first", None));
        assert!(
            lines[1].2.starts_with("xxx") && lines[1].2.len() < 17_000 && lines[1].2.ends_with("longer)")
        );
        let mut forward = read_towards(&path, ReadFrom::Start { first_ms: 5 });
        forward.reverse();
        assert!(forward == lines, "the same lines in the other order");
        std::fs::write(&path, b"\xff\xfe\r\n").unwrap();
        std::fs::write(dir.path().join("log.times"), [7; 41]).unwrap();
        assert_eq!(read(&path, u64::MAX)[0].2, "\u{fffd}\u{fffd}");
        assert!(read(&dir.path().join("none"), 5).is_empty());
    }
}
