//! Copies what a container prints into the rotated log of its worker, without loss or repetition across servers.
//!
//! Beside the log is a note of how far the copy is: which messages of the daemon are in it, and the size of the log after
//! them. A server that was killed leaves a log that is longer than noted; the next one cuts the rest off and copies it
//! again. The times of messages do not tell which ones were copied: the parts of a long line have the same time, and two
//! streams can be out of order.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use longshore_launch::{RotatedLog, RotationLimits};

/// The shortest time between two notes, unless the log was rotated.
const NOTE_EVERY: Duration = Duration::from_millis(100);

/// The messages that are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Position {
    /// The second of the latest message, since the Unix epoch; 0 before the first.
    second: i64,
    /// How many messages were copied from the first of that second on.
    messages: u64,
}

/// The copy of one container's output.
pub(crate) struct OutputCopy {
    log: RotatedLog,
    note: File,
    noted_at: Option<Instant>,
    noted_bytes: u64,
    copied: Position,
    /// How many of the next messages are in the log.
    to_skip: u64,
}

impl OutputCopy {
    /// Continues the copy in the file `log`, or begins it.
    pub(crate) fn open(log: &Path, limits: RotationLimits) -> io::Result<Self> {
        let path = log.with_file_name("log.copied");
        let noted = fs::read_to_string(&path).unwrap_or_default();
        let note = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        let (copied, bytes) = parsed(&noted).unwrap_or_default();
        if fs::metadata(log).is_ok_and(|facts| facts.len() > bytes) {
            OpenOptions::new().write(true).open(log)?.set_len(bytes)?;
        }
        let log = RotatedLog::open(log, limits)?;
        Ok(Self { log, note, noted_at: None, noted_bytes: bytes, copied, to_skip: copied.messages })
    }

    /// The second from which messages are needed, since the Unix epoch; 0: all.
    pub(crate) fn since_s(&self) -> i32 {
        i32::try_from(self.copied.second).unwrap_or_default()
    }

    /// Copies the next message from [`since_s`](Self::since_s) on. It begins with its time. A message that was copied
    /// before is left out.
    pub(crate) fn copy(&mut self, message: &[u8]) -> io::Result<()> {
        if self.to_skip > 0 {
            self.to_skip -= 1;
            return Ok(());
        }
        let (second, text) = timed(message).unwrap_or((self.copied.second, message));
        self.log.write(text)?;
        if second > self.copied.second {
            self.copied = Position { second, messages: 0 };
        }
        self.copied.messages += 1;
        let is_rotated = self.log.bytes() < self.noted_bytes;
        if is_rotated || self.noted_at.is_none_or(|at| at.elapsed() >= NOTE_EVERY) {
            self.write_note()?;
        }
        Ok(())
    }

    /// Notes how far the copy is. The note has a fixed width, and is overwritten in place.
    fn write_note(&mut self) -> io::Result<()> {
        let (Position { second, messages }, bytes) = (self.copied, self.log.bytes());
        self.note.write_all_at(format!("{second:>20} {messages:>20} {bytes:>20}\n").as_bytes(), 0)?;
        (self.noted_at, self.noted_bytes) = (Some(Instant::now()), bytes);
        Ok(())
    }
}

impl Drop for OutputCopy {
    fn drop(&mut self) {
        if let Err(error) = self.write_note() {
            tracing::error!(%error, "how far the output of a worker was copied is not noted");
        }
    }
}

/// The position and the size of the log in a note; `None` if there is none.
fn parsed(note: &str) -> Option<(Position, u64)> {
    let mut words = note.split_whitespace();
    let position = Position { second: words.next()?.parse().ok()?, messages: words.next()?.parse().ok()? };
    Some((position, words.next()?.parse().ok()?))
}

/// The second and the text of a message; `None` if it begins with no time.
fn timed(message: &[u8]) -> Option<(i64, &[u8])> {
    let end = message.iter().position(|byte| *byte == b' ')?;
    let at: jiff::Timestamp = str::from_utf8(&message[..end]).ok()?.parse().ok()?;
    Some((at.as_second(), &message[end + 1..]))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use super::*;

    const SECOND: i64 = 1_767_323_040;

    /// What the daemon stores: one message per part of a line, each with a time.
    fn at(second: u32, text: &str) -> Vec<u8> {
        format!("2026-01-02T03:04:{second:02}.000000001Z {text}").into_bytes()
    }

    /// The log of a worker, and the messages that the daemon stores.
    struct Container {
        _dir: tempfile::TempDir,
        log: PathBuf,
        stored: Vec<(i64, Vec<u8>)>,
    }

    impl Container {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            Self { log: dir.path().join("log"), _dir: dir, stored: Vec::new() }
        }

        fn prints(&mut self, second: u32, text: &str) {
            self.stored.push((SECOND + i64::from(second), at(second, text)));
        }

        fn open(&self) -> OutputCopy {
            OutputCopy::open(&self.log, RotationLimits::default()).unwrap()
        }

        /// Copies as a new connection to the daemon does: from the first message of the second on.
        fn copy(&self) -> OutputCopy {
            let mut copy = self.open();
            let since = i64::from(copy.since_s());
            for (_, message) in self.stored.iter().skip_while(|(second, _)| *second < since) {
                copy.copy(message).unwrap();
            }
            copy
        }

        fn text(&self) -> String {
            fs::read_to_string(&self.log).unwrap()
        }
    }

    #[test]
    fn a_copy_continues_without_loss_or_repetition() {
        let mut container = Container::new();
        assert_eq!(container.open().since_s(), 0);
        container.prints(1, "one\n");
        container.prints(2, "two\n");
        drop(container.copy());
        // The server was killed between the log and the note.
        OpenOptions::new().append(true).open(&container.log).unwrap().write_all(b"three\n").unwrap();
        container.prints(3, "three\n");
        container.prints(3, "four\n");
        assert_eq!(i64::from(container.open().since_s()), SECOND + 2);
        drop(container.copy());
        drop(container.copy());
        assert_eq!(container.text(), "one\ntwo\nthree\nfour\n");
    }

    #[test]
    fn parts_of_a_line_and_messages_out_of_order_are_copied_once() {
        let mut container = Container::new();
        for (second, text) in [(1, "a long "), (1, "line, "), (1, "its end\n"), (2, "out\n"), (1, "err\n")] {
            container.prints(second, text);
            drop(container.copy());
        }
        assert_eq!(container.text(), "a long line, its end\nout\nerr\n");
    }

    #[test]
    fn a_message_without_a_time_is_copied_whole() {
        let mut copy = Container::new().open();
        for message in [&b""[..], b"no time"] {
            copy.copy(message).unwrap();
        }
        assert_eq!(copy.copied, Position { second: 0, messages: 2 });
    }
}
