//! The lines that one worker prints from a moment on: its log file, read forward.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::lines::{LINE_BYTES_MAX, Line, text_of, times_of, times_path};

/// Most bytes that are read together, and the fewest that may be asked for: more than a line that is shown.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
pub(super) const PIECE_BYTES_MIN: usize = 2 * LINE_BYTES_MAX;
/// A reader that is further behind leaves lines out.
const BEHIND_BYTES_MAX: u64 = 4 << 20;

/// A position in the log of one worker, which moves on with the lines that are read.
pub(super) struct AppendedLines {
    worker: String,
    path: PathBuf,
    /// The inode of the file that was read last; 0 before the first one. A rotation changes it.
    inode: u64,
    /// Where the next line begins, in bytes.
    offset: u64,
    /// The bytes of the line at `offset` that were returned already: it has no end yet.
    unfinished: usize,
    /// Whether `offset` is in a line that was returned already, cut.
    is_cut: bool,
    times: Times,
}

/// What a read found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Appended {
    /// Lines in the order in which they were printed. The last one may have no end yet; it is returned again when it is longer.
    Lines {
        lines: Vec<Line>,
        /// Whether there are more to read.
        has_more: bool,
    },
    /// There is too much to read, or a file is gone: lines are left out.
    Behind,
}

impl AppendedLines {
    /// The lines from the first one on of a log that a worker has begun.
    pub(super) fn from_start(worker: String, path: PathBuf) -> Self {
        Self { worker, path, inode: 0, offset: 0, unfinished: 0, is_cut: false, times: Times::default() }
    }

    /// The lines from the last one on that has no end yet. A log that cannot be read begins later.
    pub(super) fn from_end(worker: String, path: PathBuf) -> Self {
        let mut lines = Self::from_start(worker, path);
        if let Ok((inode, offset, is_cut)) = last_line(&lines.path) {
            (lines.inode, lines.offset, lines.is_cut) = (inode, offset, is_cut);
        }
        lines
    }

    /// Goes on in the same log at another path.
    pub(super) fn move_to(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// The next lines, of at most this number of bytes, which is from `PIECE_BYTES_MIN` to `PIECE_BYTES`. Blocks.
    pub(super) fn read(&mut self, bytes_max: usize) -> Appended {
        self.try_read(bytes_max).unwrap_or(Appended::Lines { lines: Vec::new(), has_more: false })
    }

    fn try_read(&mut self, bytes_max: usize) -> io::Result<Appended> {
        // The file may be missing while it is rotated; the next read finds it.
        let mut file = File::open(&self.path)?;
        let facts = file.metadata()?;
        if self.inode == 0 {
            self.inode = facts.ino();
        }
        if facts.ino() != self.inode {
            let previous = self.path.with_added_extension("1");
            let Ok(mut file) = File::open(&previous) else { return Ok(Appended::Behind) };
            if file.metadata()?.ino() != self.inode {
                return Ok(Appended::Behind);
            }
            let (lines, has_more) = self.lines_of(&mut file, &previous, bytes_max)?;
            if !has_more {
                let (worker, path) = (std::mem::take(&mut self.worker), std::mem::take(&mut self.path));
                *self = Self { inode: facts.ino(), ..Self::from_start(worker, path) };
            }
            return Ok(Appended::Lines { lines, has_more: true });
        }
        let behind = facts.len().checked_sub(self.offset);
        if behind.is_none_or(|bytes| bytes > BEHIND_BYTES_MAX) {
            return Ok(Appended::Behind);
        }
        let path = self.path.clone();
        let (lines, has_more) = self.lines_of(&mut file, &path, bytes_max)?;
        Ok(Appended::Lines { lines, has_more })
    }

    /// The next lines of a file, and whether it has more.
    fn lines_of(&mut self, file: &mut File, path: &Path, bytes_max: usize) -> io::Result<(Vec<Line>, bool)> {
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        file.take(bytes_max as u64).read_to_end(&mut bytes)?;
        let has_more = bytes.len() == bytes_max;
        // The time of a byte is stored before it.
        self.times.read_on(path)?;
        let (mut lines, mut start) = (Vec::new(), 0);
        while let Some(len) = bytes[start..].iter().position(|byte| *byte == b'\n') {
            let is_whole = start == 0 && len > 0 && len == self.unfinished;
            if !std::mem::take(&mut self.is_cut) && !is_whole {
                lines.push(self.line(start, &bytes[start..start + len]));
            }
            start += len + 1;
        }
        let rest = bytes.len() - start;
        let is_known = self.is_cut || (start == 0 && rest == self.unfinished);
        if rest == 0 || is_known {
            self.unfinished = rest;
        } else if !has_more || rest > LINE_BYTES_MAX {
            lines.push(self.line(start, &bytes[start..]));
            self.unfinished = rest;
        } else {
            // The next read returns it, longer.
            self.unfinished = 0;
        }
        if rest > LINE_BYTES_MAX || self.is_cut {
            // What follows of the line is not shown.
            (self.is_cut, self.unfinished, start) = (true, 0, bytes.len());
        }
        self.offset += start as u64;
        self.times.forget_before(self.offset);
        Ok((lines, has_more))
    }

    /// The line that begins this number of bytes behind the position.
    fn line(&self, start: usize, bytes: &[u8]) -> Line {
        let offset = self.offset + start as u64;
        let at = self.times.at(offset);
        Line { at, worker: self.worker.clone(), offset, text: text_of(bytes) }
    }
}

/// The inode of a file, and where its last line begins that has no end; for a line longer than a piece, the end of the file
/// and `true`.
fn last_line(path: &Path) -> io::Result<(u64, u64, bool)> {
    let mut file = File::open(path)?;
    let facts = file.metadata()?;
    let start = facts.len().saturating_sub(PIECE_BYTES as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; (facts.len() - start) as usize];
    file.read_exact(&mut bytes)?;
    let begin = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => Some(start + at as u64 + 1),
        None => (start == 0).then_some(0),
    };
    Ok((facts.ino(), begin.unwrap_or(facts.len()), begin.is_none()))
}

/// The times of a file's bytes, as far as they are needed.
#[derive(Debug, Default)]
struct Times {
    pairs: Vec<(u64, u64)>,
    /// The bytes of the file of times that were read.
    read: u64,
}

impl Times {
    /// Reads the pairs that were added. A log without times has none.
    fn read_on(&mut self, log: &Path) -> io::Result<()> {
        let Ok(mut file) = File::open(times_path(log)) else { return Ok(()) };
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        self.read += bytes.len() as u64 / 16 * 16;
        self.pairs.append(&mut times_of(&bytes));
        Ok(())
    }

    /// When the byte at this offset was printed, in ms since 1970.
    fn at(&self, offset: u64) -> Option<u64> {
        let after = self.pairs.partition_point(|(from, _)| *from <= offset);
        Some(self.pairs[..after].last()?.1)
    }

    /// Drops the pairs of bytes before this offset.
    fn forget_before(&mut self, offset: u64) {
        let after = self.pairs.partition_point(|(from, _)| *from <= offset);
        self.pairs.drain(..after.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::lines::WorkerLines;
    use super::*;

    fn texts(found: &Appended) -> Vec<&str> {
        let Appended::Lines { lines, .. } = found else { panic!("behind") };
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    fn append(path: &Path, text: &str) {
        File::options().create(true).append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn note(path: &Path, offset: u64, ms: u64) {
        let pair = [offset.to_le_bytes(), ms.to_le_bytes()].concat();
        File::options().create(true).append(true).open(times_path(path)).unwrap().write_all(&pair).unwrap();
    }

    #[test]
    fn lines_come_once_as_they_are_printed_with_the_ids_of_a_search() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        note(&path, 0, 1_000);
        append(&path, "old\nhal");
        let mut lines = AppendedLines::from_end("w".to_owned(), path.clone());
        assert_eq!(texts(&lines.read(PIECE_BYTES)), ["hal"]);
        assert!(texts(&lines.read(PIECE_BYTES)).is_empty(), "nothing was printed");
        note(&path, 7, 2_000);
        append(&path, "f");
        assert_eq!(texts(&lines.read(PIECE_BYTES)), ["half"]);
        append(&path, "\n");
        assert!(texts(&lines.read(PIECE_BYTES)).is_empty(), "only its end was printed");
        append(&path, "new\n\nlast");
        let found = lines.read(PIECE_BYTES);
        assert_eq!(texts(&found), ["new", "", "last"]);
        let Appended::Lines { lines: found, .. } = found else { unreachable!() };
        let mut all = WorkerLines::open("w".to_owned(), &path, u64::MAX);
        let mut searched: Vec<Line> = std::iter::from_fn(|| all.next()).take(3).collect();
        searched.reverse();
        assert_eq!(found, searched);
        let mut begun = AppendedLines::from_start("w".to_owned(), path);
        assert_eq!(texts(&begun.read(PIECE_BYTES)), ["old", "half", "new", "", "last"]);
    }

    #[test]
    fn pieces_of_a_flood_have_every_line_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let printed: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
        append(&path, &(printed.join("\n") + "\n"));
        let mut lines = AppendedLines::from_start("w".to_owned(), path);
        let (mut all, mut reads) = (Vec::new(), 0);
        loop {
            let Appended::Lines { lines, has_more } = lines.read(PIECE_BYTES_MIN) else { panic!("behind") };
            all.extend(lines.into_iter().map(|line| line.text));
            reads += 1;
            if !has_more {
                break;
            }
        }
        assert!(all == printed && reads > 5, "{} lines in {reads} reads", all.len());
    }

    #[test]
    fn the_rest_of_a_rotated_file_comes_before_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, "one\n");
        let mut lines = AppendedLines::from_end("w".to_owned(), path.clone());
        append(&path, "two\n");
        std::fs::rename(&path, dir.path().join("log.1")).unwrap();
        append(&path, "three\n");
        assert_eq!(texts(&lines.read(PIECE_BYTES)), ["two"]);
        assert_eq!(texts(&lines.read(PIECE_BYTES)), ["three"]);
        for _ in 0..2 {
            std::fs::rename(&path, dir.path().join("log.1")).unwrap();
            append(&path, "lost\n");
        }
        assert_eq!(lines.read(PIECE_BYTES), Appended::Behind);
    }

    #[test]
    fn a_long_line_comes_once_and_a_flood_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, "");
        let mut lines = AppendedLines::from_end("w".to_owned(), path.clone());
        append(&path, &"x".repeat(PIECE_BYTES + 10));
        let found = lines.read(PIECE_BYTES);
        assert!(matches!(&found, Appended::Lines { lines, has_more: true } if lines.len() == 1));
        append(&path, "more\nnext\n");
        assert_eq!(texts(&lines.read(PIECE_BYTES)), ["next"]);
        append(&path, &"y".repeat(BEHIND_BYTES_MAX as usize + 1));
        assert_eq!(lines.read(PIECE_BYTES), Appended::Behind);
        let mut lines = AppendedLines::from_end("w".to_owned(), path.clone());
        append(&path, "end\nlast\n");
        assert_eq!(texts(&lines.read(PIECE_BYTES)), ["last"]);
    }
}
