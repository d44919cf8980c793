//! The parts of a data directory that a backup contains, and their order.
//!
//! A lock on the log keeps its files in place, and the log is copied up to its durable end. Files of large payloads
//! are locked before, so that none that the log names is removed; unused code is removed only after a day. What
//! belongs to one computer (`workers/`, `lock`) or to a running log (`log-end`) is left out.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use longshore_store::{HeldLog, hold_log};

use super::entry::{Entry, Kind};
use super::list::ListWriter;
use super::{BackupError, DATA, Done};

const LOG: &str = "log";
const VOLUMES: &str = "volumes";
/// The parts of a data directory after the log, in order.
const PARTS: [&str; 6] = ["blobs", "code", VOLUMES, "audit", "webhooks", "history"];

/// A data directory with locks that keep all files that the log names.
pub(super) struct Held {
    log: HeldLog,
    /// The lock file described at `longshore_blobs::COPY_LOCK`.
    blobs: Option<File>,
}

/// Locks a data directory, which a server may be using.
pub(super) fn hold(data: &Path) -> Done<Held> {
    let path = data.join("blobs").join(longshore_blobs::COPY_LOCK);
    let blobs = match File::open(&path) {
        Ok(hold) => {
            hold.lock_shared().map_err(BackupError::io("hold", &path))?;
            Some(hold)
        }
        // No server has used this directory yet.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(BackupError::io("open", &path)(error)),
    };
    Ok(Held { log: hold_log(data)?, blobs })
}

/// Estimates the bytes to copy, for the progress line.
pub(super) fn bytes_in(data: &Path, held: &Held, with_volumes: bool) -> u64 {
    let parts = PARTS.iter().filter(|part| with_volumes || **part != VOLUMES);
    let log: u64 = held.log.files.iter().map(|file| file.bytes).sum();
    log + parts.map(|part| bytes_below(&data.join(part))).sum::<u64>()
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(facts) if facts.is_dir() => bytes_below(&entry.path()),
            Ok(facts) if facts.is_file() => facts.len(),
            _ => 0,
        })
        .sum()
}

/// Copies a data directory.
pub(super) fn copy(data: &Path, held: Held, with_volumes: bool, list: &mut ListWriter<'_>) -> Done<()> {
    let Held { log, blobs } = held;
    let folder = Path::new(DATA).join(LOG);
    list.put(&Entry::folder(&folder), &mut io::empty())?;
    for file in &log.files {
        let path = folder.join(&file.name);
        let opened = File::open(&file.path).map_err(BackupError::io("open", &file.path))?;
        let entry = Entry { path, kind: Kind::File, mode: 0o600, bytes: file.bytes, modified: 0 };
        list.put(&entry, &mut Exactly { file: opened, left: file.bytes })?;
    }
    // From here on the server may remove segments of the log again.
    drop(log);
    for part in PARTS {
        if part != VOLUMES || with_volumes {
            walk(data, Path::new(part), &is_left_out, list)?;
        }
    }
    drop(blobs);
    Ok(())
}

/// Reads the data of a backup in the order in which it was written.
pub(super) fn read(data: &Path, list: &mut ListWriter<'_>) -> Done<()> {
    for part in [LOG].iter().chain(&PARTS) {
        walk(data, Path::new(part), &|_, _| false, list)?;
    }
    Ok(())
}

/// Lists `inner` and everything below it to `data`, sorted by name.
fn walk(
    data: &Path,
    inner: &Path,
    is_left_out: &dyn Fn(&Path, &Path) -> bool,
    list: &mut ListWriter<'_>,
) -> Done<()> {
    let at = data.join(inner);
    let facts = match fs::symlink_metadata(&at) {
        // The file was removed meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        facts => facts.map_err(BackupError::io("read", &at))?,
    };
    let path = Path::new(DATA).join(inner);
    if facts.is_file() {
        return put_file(&at, path, list);
    }
    if facts.is_symlink() {
        let target = fs::read_link(&at).map_err(BackupError::io("read", &at))?;
        let entry = Entry { kind: Kind::Link(target), mode: 0o777, ..entry_of(path, &facts) };
        return list.put(&Entry { bytes: 0, ..entry }, &mut io::empty());
    }
    if !facts.is_dir() {
        // Sockets and pipes have no content.
        return Ok(());
    }
    let entry = entry_of(path, &facts);
    list.put(&Entry { kind: Kind::Folder, mode: entry.mode | 0o700, bytes: 0, ..entry }, &mut io::empty())?;
    let entries = fs::read_dir(&at).map_err(BackupError::io("read", &at))?;
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let mut names = names.map_err(BackupError::io("read", &at))?;
    names.sort();
    for name in names {
        let inner = inner.join(name);
        if !is_left_out(data, &inner) {
            walk(data, &inner, is_left_out, list)?;
        }
    }
    Ok(())
}

fn put_file(at: &Path, path: PathBuf, list: &mut ListWriter<'_>) -> Done<()> {
    let file = match File::open(at) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file.map_err(BackupError::io("open", at))?,
    };
    let facts = file.metadata().map_err(BackupError::io("read", at))?;
    let entry = entry_of(path, &facts);
    let bytes = entry.bytes;
    list.put(&entry, &mut Exactly { file, left: bytes })
}

fn entry_of(path: PathBuf, facts: &Metadata) -> Entry {
    let modified = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Entry {
        path,
        kind: Kind::File,
        mode: facts.permissions().mode() & 0o777 | 0o600,
        bytes: facts.len(),
        modified: modified.unwrap_or_default().as_secs(),
    }
}

/// Whether a path is a temporary file, which is useless in a copy.
fn is_left_out(data: &Path, inner: &Path) -> bool {
    let is_gone = |name: &str| name.rsplit_once('.').is_some_and(|(_, end)| end == "gone");
    let parts: Vec<_> = inner.iter().map(|part| part.to_string_lossy()).collect();
    match parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>()[..] {
        ["blobs", name] => name.starts_with('.'),
        [VOLUMES, name] => name.ends_with(".deleted"),
        ["code", name] => is_gone(name),
        ["code", _, name] => {
            name.starts_with(".draft-")
                || is_gone(name)
                || name.starts_with("env-") && is_being_made(&data.join(inner))
        }
        _ => false,
    }
}

/// Whether a worker is installing this Python environment. An incomplete one is left out; workers recreate it.
fn is_being_made(environment: &Path) -> bool {
    File::open(environment.join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

/// Reads exactly the bytes that a file had at first, even if its length changes.
struct Exactly {
    file: File,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..most];
        let mut bytes = self.file.read(buffer)?;
        if bytes == 0 {
            // The file was truncated meanwhile: zeros take the place of the missing bytes.
            buffer.fill(0);
            bytes = most;
        }
        self.left -= bytes as u64;
        Ok(bytes)
    }
}
