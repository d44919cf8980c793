//! The file `log-end`: the noted end of the log. A frame that is missing before it is damage. Without the note the loss of
//! the log's end would look like a crash.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::LogEnd;
use super::format::{END_FORMAT_VERSION, END_MAGIC, END_NOTE_AT};
use super::hash::hash;
use super::names;
use crate::StoreError;

/// What is unknown about a log without the file `log-end`.
pub const UNPROVEN_END: &str =
    "without it the end of the log is unproven, and what was acknowledged last may be missing";

/// Bytes of an entry; the last eight are the hash.
const ENTRY_BYTES: usize = 48;
/// Bytes of the file: each of the two entries has a sector of its own.
const FILE_BYTES: usize = 2 * END_NOTE_AT;

/// The open file `log-end` of a log.
#[derive(Debug)]
pub(in crate::embedded) struct EndFile {
    path: PathBuf,
    file: File,
    /// The end in the file, which may not be durable.
    end: LogEnd,
    /// The end in the first entry, which is durable.
    synced: LogEnd,
}

impl EndFile {
    /// Returns the noted end of the log in the directory `log`; `None` if there is no file.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the first entry is damaged; [`StoreError::Unusable`] if a newer version wrote the file.
    pub fn read(log: &Path) -> Result<Option<LogEnd>, StoreError> {
        let path = path(log);
        let damaged = || {
            StoreError::Corrupt(format!(
                "`{}`: the note of the log's end is damaged; restore the data directory from a backup, or take a copy of \
                 it, check it with `longshore store verify`, and remove that file: {UNPROVEN_END}",
                names::END
            ))
        };
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        match File::open(&path).and_then(|file| file.take(FILE_BYTES as u64).read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::Io(format!("cannot read `{}`: {error}", names::END))),
        }
        let version = bytes.get(8..12).map(|version| [version[0], version[1], version[2], version[3]]);
        if let Some(version) = version.map(u32::from_le_bytes).filter(|&version| version > END_FORMAT_VERSION)
            && bytes.starts_with(&END_MAGIC)
        {
            return Err(StoreError::Unusable(format!(
                "was written by a newer version (format {version} of `{}`); install that version",
                names::END
            )));
        }
        // A power cut can tear the second entry, which is never synced, but not the first one.
        let note = bytes.get(END_NOTE_AT..).and_then(decode);
        let synced = decode(&bytes).ok_or_else(damaged)?;
        Ok(Some(note.filter(|note| (note.number, note.at) > (synced.number, synced.at)).unwrap_or(synced)))
    }

    /// Makes a new file with this end, durably.
    pub fn write(log: &Path, end: LogEnd) -> io::Result<Self> {
        let path = path(log);
        let new = path.with_extension("new");
        let mut bytes = encode(end);
        bytes.resize(FILE_BYTES, 0);
        let mut file =
            File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let named =
            file.write_all(&bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, &path));
        // A file that cannot be removed is overwritten by the next attempt.
        named.inspect_err(|_| _ = fs::remove_file(&new))?;
        if let Some(parent) = path.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self { path, file, end, synced: end })
    }

    /// Replaces the file by one with this end, durably. Does nothing if the first entry has this end.
    pub fn replace(&mut self, end: LogEnd) -> io::Result<()> {
        if self.synced == end {
            return Ok(());
        }
        *self = Self::write(&self.path.with_file_name(names::LOG), end)?;
        Ok(())
    }

    /// Writes this end to the second entry without a sync: it survives the end of the process, but maybe not a power cut.
    pub fn note(&mut self, end: LogEnd) {
        if end == self.end {
            return;
        }
        // A failure is ignored: less damage is noticed after a crash, and a backup ends earlier, but no data is lost.
        if self.file.write_all_at(&encode(end), END_NOTE_AT as u64).is_ok() {
            self.end = end;
        }
    }
}

/// The file is beside the log's directory, so that it remains if the directory is removed.
fn path(log: &Path) -> PathBuf {
    log.with_file_name(names::END)
}

fn encode(end: LogEnd) -> Vec<u8> {
    let mut entry = Vec::with_capacity(FILE_BYTES);
    entry.extend_from_slice(&END_MAGIC);
    entry.extend_from_slice(&END_FORMAT_VERSION.to_le_bytes());
    entry.extend_from_slice(&[0; 4]);
    for number in [end.number, end.salt, end.at] {
        entry.extend_from_slice(&number.to_le_bytes());
    }
    entry.extend_from_slice(&hash(0, &entry).to_le_bytes());
    entry
}

fn decode(bytes: &[u8]) -> Option<LogEnd> {
    let entry = bytes.get(..ENTRY_BYTES)?;
    let number = |at: usize| entry[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let is_whole =
        entry.starts_with(&END_MAGIC) && number(ENTRY_BYTES - 8) == hash(0, &entry[..ENTRY_BYTES - 8]);
    is_whole.then(|| LogEnd { number: number(16), salt: number(24), at: number(32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_written_or_noted_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(names::LOG);
        let end = |number, at| LogEnd { number, salt: number * 7, at };
        assert_eq!(EndFile::read(&log).unwrap(), None);
        let mut file = EndFile::write(&log, end(1, 4096)).unwrap();
        assert_eq!(EndFile::read(&log).unwrap(), Some(end(1, 4096)));
        file.note(end(1, 5000));
        assert_eq!(EndFile::read(&log).unwrap(), Some(end(1, 5000)));
        file.replace(end(2, 4096)).unwrap();
        assert_eq!(EndFile::read(&log).unwrap(), Some(end(2, 4096)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_torn_note_is_ignored_and_a_damaged_entry_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(names::LOG);
        let (first, noted) =
            (LogEnd { number: 3, salt: 9, at: 4096 }, LogEnd { number: 3, salt: 9, at: 9000 });
        EndFile::write(&log, first).unwrap().note(noted);
        let whole = fs::read(path(&log)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(path(&log), &bytes).unwrap();
            match at {
                0..ENTRY_BYTES => assert!(EndFile::read(&log).is_err(), "{at}"),
                _ if (END_NOTE_AT..END_NOTE_AT + ENTRY_BYTES).contains(&at) => {
                    assert_eq!(EndFile::read(&log).unwrap(), Some(first), "{at}");
                }
                _ => assert_eq!(EndFile::read(&log).unwrap(), Some(noted), "{at}"),
            }
            fs::write(path(&log), &whole[..at]).unwrap();
            assert!(EndFile::read(&log).is_err() || at >= ENTRY_BYTES, "cut at {at}");
        }
    }
}
