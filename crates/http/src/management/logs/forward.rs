//! The lines of one log file from the oldest one on.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Take};
use std::path::Path;

use super::lines::{LINE_BYTES_MAX, PIECE_BYTES, text_of, times_of};

/// A file, read from its first wanted line.
pub(super) struct ForwardLog {
    /// What the file had when it was opened.
    reader: BufReader<Take<File>>,
    pub(super) times: Vec<(u64, u64)>,
    /// Where the next line begins.
    offset: u64,
}

impl ForwardLog {
    /// Opens the file at the first line that was printed at `first_ms` or later, as far as the times tell.
    pub(super) fn open(path: &Path, first_ms: u64) -> io::Result<Self> {
        // The times are read first: later ones are of bytes that are not read.
        let times = times_of(path);
        let mut file = File::open(path)?;
        let len = file.seek(SeekFrom::End(0))?;
        let offset = match times.partition_point(|(_, ms)| *ms < first_ms) {
            // What comes before the first time may be wanted.
            0 => 0,
            place => times.get(place).map_or(len, |(offset, _)| *offset).min(len),
        };
        // From the byte before, which shows whether a line begins there.
        let from = offset.saturating_sub(1);
        file.seek(SeekFrom::Start(from))?;
        let mut reader = BufReader::with_capacity(PIECE_BYTES as usize, file.take(len - from));
        let skipped = if offset > 0 { reader.skip_until(b'\n')? as u64 } else { 0 };
        Ok(Self { reader, times, offset: from + skipped })
    }

    /// Takes the next line: its offset and its text without the line end. Adds the bytes that are read for it to `scanned`.
    pub(super) fn next_line(&mut self, scanned: &mut u64) -> Option<(u64, String)> {
        let offset = self.offset;
        let mut bytes = Vec::new();
        // The line end may be two bytes.
        let mut read = (&mut self.reader)
            .take(LINE_BYTES_MAX as u64 + 2)
            .read_until(b'\n', &mut bytes)
            .ok()
            .filter(|read| *read > 0)?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        } else {
            read += self.reader.skip_until(b'\n').ok()?;
        }
        self.offset += read as u64;
        *scanned += read as u64;
        Some((offset, text_of(&bytes)))
    }
}
