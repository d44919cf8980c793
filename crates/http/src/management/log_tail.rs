//! Streams a log file to a client: the present lines, then the lines that are appended.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

use crate::services::files::WorkerLog;

/// The interval between two reads of a file without new bytes.
const PERIOD: Duration = Duration::from_millis(200);
const PIECE_BYTES: usize = 64 * 1024;
/// Most pieces that wait for a slow client.
const PIECES_MAX: usize = 4;

/// The body of a response: the pieces that a [`LogTail`] sends.
pub(super) struct LogBody(mpsc::Receiver<Bytes>);

impl LogBody {
    pub(super) fn channel() -> (Self, mpsc::Sender<Bytes>) {
        let (sender, receiver) = mpsc::channel(PIECES_MAX);
        (Self(receiver), sender)
    }
}

impl http_body::Body for LogBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Finds the log of a worker; `None` if there is none, or the client may no longer read it.
pub(super) type FindLog = Box<dyn Fn() -> Option<WorkerLog> + Send>;

/// Follows the log of a worker that is being started, once it is there, as long as `is_awaited`.
pub(super) async fn send_once_there(
    pieces: mpsc::Sender<Bytes>,
    tail: Option<u64>,
    find_log: FindLog,
    is_awaited: impl Fn() -> bool,
) {
    loop {
        // Checked first: the log of a worker that has ended meanwhile is there.
        let is_last = !is_awaited();
        if let Some(log) = find_log() {
            return LogTail::new(log.path, pieces).send(tail, Some(find_log)).await;
        }
        if is_last {
            return;
        }
        tokio::select! {
            () = pieces.closed() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
}

/// Reads the log of one worker for one client.
pub(super) struct LogTail {
    path: PathBuf,
    pieces: mpsc::Sender<Bytes>,
    /// The inode of the file that was read last; a rotation changes it.
    inode: u64,
    /// The number of bytes of that file that were read.
    offset: u64,
}

impl LogTail {
    pub(super) fn new(path: PathBuf, pieces: mpsc::Sender<Bytes>) -> Self {
        Self { path, pieces, inode: 0, offset: 0 }
    }

    /// Sends the last `tail` lines, or all lines for `None`. With `find_log` it then sends the bytes that the worker appends,
    /// as long as `find_log` finds a running worker.
    pub(super) async fn send(mut self, tail: Option<u64>, find_log: Option<FindLog>) {
        if let Some(lines) = tail {
            self.offset = start_of_tail(&self.path, lines).unwrap_or(0);
        }
        if let Ok(facts) = std::fs::metadata(&self.path) {
            self.inode = facts.ino();
        }
        loop {
            // Checks whether the worker runs before reading, so that its last lines are not missed.
            let found = find_log.as_ref().and_then(|find_log| find_log());
            if let Some(found) = &found {
                self.path.clone_from(&found.path);
            }
            if self.send_new_bytes().await.is_none() {
                return;
            }
            if !found.is_some_and(|found| found.live) {
                return;
            }
            tokio::select! {
                () = self.pieces.closed() => return,
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Sends the new bytes of the file. `None` if the client has disconnected.
    async fn send_new_bytes(&mut self) -> Option<()> {
        loop {
            match self.read() {
                Ok(piece) if !piece.is_empty() => self.pieces.send(piece.into()).await.ok()?,
                // The file may be missing while it is rotated; the next read finds it.
                _ => return Some(()),
            }
        }
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        let facts = file.metadata()?;
        if facts.ino() != self.inode || facts.len() < self.offset {
            // The file was rotated: read the new one from the start.
            (self.inode, self.offset) = (facts.ino(), 0);
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut piece = Vec::new();
        file.take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        self.offset += piece.len() as u64;
        Ok(piece)
    }
}

/// The offset in bytes at which the last `lines` lines of a file begin.
fn start_of_tail(path: &Path, lines: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut end = file.metadata()?.len();
    let (length, mut left) = (end, lines);
    if lines == 0 {
        return Ok(length);
    }
    while end > 0 {
        let start = end.saturating_sub(PIECE_BYTES as u64);
        file.seek(SeekFrom::Start(start))?;
        let mut piece = vec![0; (end - start) as usize];
        file.read_exact(&mut piece)?;
        for (at, byte) in piece.iter().enumerate().rev() {
            let position = start + at as u64;
            // The line end at the end of the file starts no further line.
            if *byte == b'\n' && position + 1 < length {
                left = left.saturating_sub(1);
                if left == 0 {
                    return Ok(position + 1);
                }
            }
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_with_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let text = (0..20_000).fold(String::new(), |text, number| text + &format!("line {number}\n"));
        std::fs::write(&path, &text).unwrap();
        let tail = |lines| text[start_of_tail(&path, lines).unwrap() as usize..].to_owned();
        assert_eq!(tail(0), "");
        assert_eq!(tail(1), "line 19999\n");
        assert_eq!(tail(12_000).lines().count(), 12_000);
        assert_eq!(tail(20_000), text);
        assert_eq!(tail(1_000_000), text);
        std::fs::write(&path, "a\nb").unwrap();
        assert_eq!(start_of_tail(&path, 1).unwrap(), 2);
    }

    #[tokio::test]
    async fn what_comes_follows_what_is_there_also_into_a_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "one\n").unwrap();
        let (LogBody(mut pieces), sender) = LogBody::channel();
        let (tell, told) = std::sync::mpsc::channel::<bool>();
        let log = WorkerLog { path: path.clone(), live: true };
        let again = move || {
            let live = !told.try_recv().unwrap_or(false);
            Some(WorkerLog { live, ..log.clone() })
        };
        let sending = tokio::spawn(LogTail::new(path.clone(), sender).send(None, Some(Box::new(again))));
        assert_eq!(pieces.recv().await.unwrap(), "one\n");
        std::fs::write(dir.path().join("new"), "two\n").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(pieces.recv().await.unwrap(), "two\n");
        tell.send(true).unwrap();
        assert_eq!(pieces.recv().await, None);
        sending.await.unwrap();
    }
}
