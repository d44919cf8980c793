//! The lines that one worker prints from a moment on: its log file, read forward.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::lines::{LINE_BYTES_MAX, Line, add_times, text_of, times_path};

/// The most that one read takes, of one log or of several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes; at least [`Budget::BYTES_MIN`] for a further log.
    pub(super) bytes: usize,
    pub(super) lines: usize,
}

impl Budget {
    /// More than a line that is shown.
    pub(super) const BYTES_MIN: usize = 2 * LINE_BYTES_MAX;

    /// Whether there is some left for a further log.
    pub(super) fn has_some(&self) -> bool {
        self.bytes >= Self::BYTES_MIN && self.lines > 0
    }
}

/// The bytes before the end of a file in which its last line is looked for.
const LAST_LINE_BYTES: u64 = 256 * 1024;
/// A reader that is further behind leaves lines out.
const BEHIND_BYTES_MAX: u64 = 4 << 20;

/// A position in the log of one worker, which moves on with the lines that are read.
pub(super) struct AppendedLines {
    worker: String,
    path: PathBuf,
    /// The file that was read last; `None` before the first one. A rotation changes it.
    file: Option<FileIdentity>,
    /// Where the next line begins, in bytes.
    offset: u64,
    /// The bytes of the line at `offset` that were returned already: it has no end yet.
    unfinished: usize,
    /// Whether `offset` is in a line that was returned already, cut.
    is_cut: bool,
    times: Times,
}

/// What tells a file from others of its file system. Inodes are used again, so the time of the file's creation counts, too, where
/// it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity(u64, Option<SystemTime>);

impl FileIdentity {
    fn of(facts: &Metadata) -> Self {
        Self(facts.ino(), facts.created().ok())
    }
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
        Self { worker, path, file: None, offset: 0, unfinished: 0, is_cut: false, times: Times::default() }
    }

    /// The lines from the last one on that has no end yet. A log that cannot be read begins later.
    pub(super) fn from_end(worker: String, path: PathBuf) -> Self {
        let mut lines = Self::from_start(worker, path);
        if let Ok((file, offset, is_cut)) = last_line(&lines.path) {
            (lines.file, lines.offset, lines.is_cut) = (Some(file), offset, is_cut);
        }
        lines
    }

    /// Goes on in the same log at another path.
    pub(super) fn move_to(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// The next lines, as far as the budget goes, from which they are taken. Blocks.
    pub(super) fn read(&mut self, budget: &mut Budget) -> Appended {
        self.try_read(budget).unwrap_or(Appended::Lines { lines: Vec::new(), has_more: false })
    }

    fn try_read(&mut self, budget: &mut Budget) -> io::Result<Appended> {
        // The file may be missing while it is rotated; the next read finds it.
        let mut log = LogFiles::open(&self.path)?;
        let facts = log.lines.metadata()?;
        let present = FileIdentity::of(&facts);
        if *self.file.get_or_insert(present) != present {
            return self.finish_previous(present, budget);
        }
        let behind = facts.len().checked_sub(self.offset);
        if behind.is_none_or(|bytes| bytes > BEHIND_BYTES_MAX) {
            return Ok(Appended::Behind);
        }
        let (lines, has_more) = self.lines_of(&mut log, budget)?;
        Ok(Appended::Lines { lines, has_more })
    }

    /// Reads the rest of the file that was renamed, and goes on with the present one.
    fn finish_previous(&mut self, present: FileIdentity, budget: &mut Budget) -> io::Result<Appended> {
        let previous = LogFiles::open(&self.path.with_added_extension("1"));
        let Ok(mut log) = previous else { return Ok(Appended::Behind) };
        if self.file != Some(FileIdentity::of(&log.lines.metadata()?)) {
            return Ok(Appended::Behind);
        }
        let (lines, has_more) = self.lines_of(&mut log, budget)?;
        if !has_more {
            let (worker, path) = (std::mem::take(&mut self.worker), std::mem::take(&mut self.path));
            *self = Self { file: Some(present), ..Self::from_start(worker, path) };
        }
        Ok(Appended::Lines { lines, has_more: true })
    }

    /// The next lines of a file, and whether it has more.
    fn lines_of(&mut self, log: &mut LogFiles, budget: &mut Budget) -> io::Result<(Vec<Line>, bool)> {
        log.lines.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = Vec::new();
        (&mut log.lines).take(budget.bytes as u64).read_to_end(&mut bytes)?;
        // The time of a byte is stored before it.
        self.times.read_on(log.times.as_mut())?;
        let (mut lines, mut start) = (Vec::new(), 0);
        while let Some(len) = bytes[start..].iter().position(|byte| *byte == b'\n')
            && lines.len() < budget.lines
        {
            let is_whole = start == 0 && len > 0 && len == self.unfinished;
            if !std::mem::take(&mut self.is_cut) && !is_whole {
                lines.push(self.line(start, &bytes[start..start + len]));
            }
            start += len + 1;
        }
        let has_more = bytes.len() == budget.bytes || lines.len() == budget.lines;
        let rest = if lines.len() == budget.lines { 0 } else { bytes.len() - start };
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
        if rest > LINE_BYTES_MAX || (rest > 0 && self.is_cut) {
            // What follows of the line is not shown.
            (self.is_cut, self.unfinished, start) = (true, 0, bytes.len());
        }
        self.offset += start as u64;
        self.times.forget_before(self.offset);
        budget.bytes -= bytes.len();
        budget.lines = budget.lines.saturating_sub(lines.len());
        Ok((lines, has_more))
    }

    /// The line that begins this number of bytes behind the position.
    fn line(&self, start: usize, bytes: &[u8]) -> Line {
        let offset = self.offset + start as u64;
        let at = self.times.at(offset);
        Line { at, worker: self.worker.clone(), offset, text: text_of(bytes) }
    }
}

/// A file of lines, and the one of their times.
struct LogFiles {
    lines: File,
    times: Option<File>,
}

impl LogFiles {
    fn open(path: &Path) -> io::Result<Self> {
        // In the order in which a rotation renames them: the times of another file are not taken for those of this one.
        let times = File::open(times_path(path)).ok();
        Ok(Self { times, lines: File::open(path)? })
    }
}

/// A file, and where its last line begins that has no end; for a very long line, the end of the file and `true`.
fn last_line(path: &Path) -> io::Result<(FileIdentity, u64, bool)> {
    let mut file = File::open(path)?;
    let facts = file.metadata()?;
    let start = facts.len().saturating_sub(LAST_LINE_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; (facts.len() - start) as usize];
    file.read_exact(&mut bytes)?;
    let begin = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => Some(start + at as u64 + 1),
        None => (start == 0).then_some(0),
    };
    Ok((FileIdentity::of(&facts), begin.unwrap_or(facts.len()), begin.is_none()))
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
    fn read_on(&mut self, file: Option<&mut File>) -> io::Result<()> {
        let Some(file) = file else { return Ok(()) };
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        self.read += bytes.len() as u64 / 16 * 16;
        add_times(&mut self.pairs, &bytes);
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

    use super::super::lines::{ReadFrom, WorkerLines};
    use super::*;

    const MUCH: Budget = Budget { bytes: 256 * 1024, lines: 100_000 };

    fn texts(found: &Appended) -> Vec<&str> {
        let Appended::Lines { lines, .. } = found else { panic!("behind") };
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    /// The texts of each read with this budget, as long as there are more.
    fn read_all(lines: &mut AppendedLines, budget: Budget) -> Vec<Vec<String>> {
        let mut reads = Vec::new();
        loop {
            let mut left = budget;
            let Appended::Lines { lines, has_more } = lines.read(&mut left) else { panic!("behind") };
            assert_eq!(left.lines + lines.len(), budget.lines);
            reads.push(lines.into_iter().map(|line| line.text).collect());
            if !has_more {
                return reads;
            }
        }
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
        assert_eq!(texts(&lines.read(&mut MUCH.clone())), ["hal"]);
        assert!(texts(&lines.read(&mut MUCH.clone())).is_empty(), "nothing was printed");
        note(&path, 7, 2_000);
        append(&path, "f");
        assert_eq!(texts(&lines.read(&mut MUCH.clone())), ["half"]);
        append(&path, "\n");
        assert!(texts(&lines.read(&mut MUCH.clone())).is_empty(), "only its end was printed");
        append(&path, "new\n\nlast");
        let found = lines.read(&mut MUCH.clone());
        assert_eq!(texts(&found), ["new", "", "last"]);
        let Appended::Lines { lines: found, .. } = found else { unreachable!() };
        let mut all = WorkerLines::open("w".to_owned(), &path, ReadFrom::End { last_ms: u64::MAX });
        let mut searched: Vec<Line> = std::iter::from_fn(|| all.next()).take(3).collect();
        searched.reverse();
        assert_eq!(found, searched);
        let mut begun = AppendedLines::from_start("w".to_owned(), path);
        assert_eq!(texts(&begun.read(&mut MUCH.clone())), ["old", "half", "new", "", "last"]);
    }

    #[test]
    fn pieces_of_a_flood_have_every_line_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let printed: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
        append(&path, &(printed.join("\n") + "\n"));
        let mut lines = AppendedLines::from_start("w".to_owned(), path);
        let reads = read_all(&mut lines, Budget { bytes: Budget::BYTES_MIN, ..MUCH });
        let (all, reads) = (reads.concat(), reads.len());
        assert!(all == printed && reads > 5, "{} lines in {reads} reads", all.len());
    }

    #[test]
    fn empty_lines_are_bounded_and_come_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, &"\n".repeat(1_000));
        append(&path, "last");
        let mut lines = AppendedLines::from_start("w".to_owned(), path);
        let reads = read_all(&mut lines, Budget { lines: 300, ..MUCH });
        let reads: Vec<usize> = reads.iter().map(Vec::len).collect();
        assert_eq!(reads, [300, 300, 300, 101]);
    }

    #[test]
    fn times_that_go_back_are_left_out_as_in_a_search() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        note(&path, 0, 5_000);
        append(&path, "one\n");
        let mut lines = AppendedLines::from_start("w".to_owned(), path.clone());
        lines.read(&mut MUCH.clone());
        note(&path, 4, 2_000);
        append(&path, "two\n");
        let Appended::Lines { lines: found, .. } = lines.read(&mut MUCH.clone()) else { panic!("behind") };
        assert_eq!(
            found,
            [WorkerLines::open("w".to_owned(), &path, ReadFrom::End { last_ms: u64::MAX }).next().unwrap()]
        );
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
        assert_eq!(texts(&lines.read(&mut MUCH.clone())), ["two"]);
        assert_eq!(texts(&lines.read(&mut MUCH.clone())), ["three"]);
        for _ in 0..2 {
            std::fs::rename(&path, dir.path().join("log.1")).unwrap();
            append(&path, "lost\n");
        }
        assert_eq!(lines.read(&mut MUCH.clone()), Appended::Behind);
    }

    #[test]
    fn a_long_line_comes_once_and_a_flood_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, "");
        let mut lines = AppendedLines::from_end("w".to_owned(), path.clone());
        append(&path, &"x".repeat(MUCH.bytes + 10));
        let found = lines.read(&mut MUCH.clone());
        assert!(matches!(&found, Appended::Lines { lines, has_more: true } if lines.len() == 1));
        append(&path, "more\nnext\n");
        assert_eq!(texts(&lines.read(&mut MUCH.clone())), ["next"]);
        append(&path, &"y".repeat(BEHIND_BYTES_MAX as usize + 1));
        assert_eq!(lines.read(&mut MUCH.clone()), Appended::Behind);
        let mut lines = AppendedLines::from_end("w".to_owned(), path.clone());
        append(&path, "end\nlast\n");
        assert_eq!(texts(&lines.read(&mut MUCH.clone())), ["last"]);
    }
}
