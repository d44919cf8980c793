//! Reads the record that `disk.c` writes.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The file in the recorded folder for marks: each write to it is a [`Step::mark`] and no content.
pub(crate) const MARKS: &str = ".marks";

/// One change of the recorded folder, or a mark.
#[derive(Debug)]
pub struct Step {
    /// When the operation took effect, on the computer's monotonic clock.
    pub time: Duration,
    /// The operation on the file, with what it wrote.
    pub(crate) op: Op,
}

impl Step {
    /// Returns the text of a mark; `None` for any other step.
    pub fn mark(&self) -> Option<&str> {
        if let Op::Marked(text) = &self.op { Some(text) } else { None }
    }
}

/// A recorded operation. Files and folders are identified by their inode; names are relative to the recorded folder.
#[derive(Debug)]
pub(crate) enum Op {
    /// A file with this inode was created.
    Created { name: String, file: u64 },
    /// A folder was created. The first step of a record is the recorded folder itself, with an empty name.
    Folder { name: String, file: u64 },
    /// Bytes were written at an offset.
    Written { file: u64, at: u64, data: Vec<u8> },
    /// A file was truncated or extended to a length, in bytes.
    Truncated { file: u64, length: u64 },
    /// A sync began. It covers the earlier changes of the file. `sync` is its number.
    SyncBegan { file: u64, sync: u64 },
    /// The sync with this number succeeded.
    SyncEnded { sync: u64 },
    /// A sync failed. The changes that it should have covered may be on disk or not, and no later sync writes them.
    SyncFailed { file: u64 },
    /// A file was renamed.
    Renamed { from: String, to: String },
    /// A file or folder was removed.
    Removed { name: String },
    /// The program wrote a mark with this text.
    Marked(String),
}

/// Reads a whole record: the steps in the order in which they took effect.
///
/// # Errors
///
/// If the file cannot be read, or with `UnexpectedEof` if its last entry is incomplete.
pub(crate) fn read(record: &Path) -> io::Result<Vec<Step>> {
    let bytes = std::fs::read(record)?;
    let mut rest = &bytes[..];
    let (mut steps, mut marks) = (Vec::new(), HashSet::new());
    while !rest.is_empty() {
        let entry = Entry::split_off(&mut rest).ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "the record of the disk ends in the middle")
        })?;
        let time = Duration::from_nanos(entry.time_ns);
        match entry.into_op() {
            Op::Created { name, file } if name == MARKS => _ = marks.insert(file),
            Op::Written { file, data, .. } if marks.contains(&file) => {
                steps.push(Step { time, op: Op::Marked(String::from_utf8_lossy(&data).into_owned()) });
            }
            op => steps.push(Step { time, op }),
        }
    }
    Ok(steps)
}

/// An entry of the record, as `disk.c` writes it.
struct Entry {
    kind: u8,
    file: u64,
    at: u64,
    time_ns: u64,
    name: String,
    data: Vec<u8>,
}

impl Entry {
    /// Removes the first entry from the bytes; `None` if they end before it does. The layout is `struct entry` of `disk.c`.
    fn split_off(rest: &mut &[u8]) -> Option<Self> {
        let (kind, name_bytes) = (u32_of(rest)?, u32_of(rest)?);
        let (file, at, time_ns, data_bytes) = (u64_of(rest)?, u64_of(rest)?, u64_of(rest)?, u64_of(rest)?);
        let name = String::from_utf8_lossy(rest.split_off(..name_bytes as usize)?).into_owned();
        let data = rest.split_off(..usize::try_from(data_bytes).ok()?)?.to_vec();
        Some(Self { kind: u8::try_from(kind).ok()?, file, at, time_ns, name, data })
    }

    fn into_op(self) -> Op {
        let Self { kind, file, at, name, data, .. } = self;
        match kind {
            b'c' => Op::Created { name, file },
            b'd' => Op::Folder { name, file },
            b'w' => Op::Written { file, at, data },
            b't' => Op::Truncated { file, length: at },
            b's' => Op::SyncBegan { file, sync: at },
            b'e' => Op::SyncEnded { sync: at },
            b'f' => Op::SyncFailed { file },
            b'r' => {
                let (from, to) = name.split_once('\0').unwrap_or((&name, ""));
                Op::Renamed { from: from.to_owned(), to: to.to_owned() }
            }
            b'u' => Op::Removed { name },
            other => unreachable!("`disk.c` writes no entries of kind {other}"),
        }
    }
}

fn u32_of(rest: &mut &[u8]) -> Option<u32> {
    rest.split_off(..4)?.try_into().map(u32::from_le_bytes).ok()
}

fn u64_of(rest: &mut &[u8]) -> Option<u64> {
    rest.split_off(..8)?.try_into().map(u64::from_le_bytes).ok()
}
