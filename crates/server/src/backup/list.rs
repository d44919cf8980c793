//! `backup.list`: one line per entry. The list of a backup is compared with the list made while reading it back.
//!
//! ```text
//! file 600 4096 <sha256> data/log/0000000001.log
//! folder 700 0 - data/blobs
//! link 777 0 - data/volumes/x/latest -> v2
//! ```
//!
//! Characters of a path that are not printable ASCII are escaped, as in `\n` and `\xff`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;

use ring::digest::{Context, SHA256};

use super::entry::{Entry, Kind, Sink};
use super::progress::Progress;
use super::{BackupError, Done};

/// Name of the list's file.
pub(super) const NAME: &str = "backup.list";

/// Passes entries to a sink and lists them.
pub(super) struct ListWriter<'a> {
    sink: &'a mut dyn Sink,
    progress: &'a mut Progress,
    text: Vec<u8>,
    files: u64,
    bytes: u64,
}

impl<'a> ListWriter<'a> {
    pub(super) fn new(sink: &'a mut dyn Sink, progress: &'a mut Progress) -> Self {
        Self { sink, progress, text: Vec::new(), files: 0, bytes: 0 }
    }

    pub(super) fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()> {
        let progress = &mut *self.progress;
        let mut hashed =
            Hashed { content, context: Context::new(&SHA256), bytes: 0, progress, failed: false };
        match self.sink.put(entry, &mut hashed) {
            // A failed read of the source looks like a failed write to the sink.
            Err(BackupError::Io { cause, .. }) if hashed.failed => {
                return Err(BackupError::io("read", &entry.path)(cause));
            }
            taken => taken?,
        }
        // Bytes that the sink left unread still count for the hash.
        io::copy(&mut hashed, &mut io::sink()).map_err(BackupError::io("read", &entry.path))?;
        let (bytes, digest) = (hashed.bytes, hashed.context.finish());
        let (kind, hash) = match &entry.kind {
            Kind::Folder => ("folder", "-".to_owned()),
            Kind::Link(_) => ("link", "-".to_owned()),
            Kind::File => {
                self.files += 1;
                self.bytes += bytes;
                ("file", const_hex::encode(digest))
            }
        };
        let line = format!("{kind} {:o} {bytes} {hash} {}", entry.mode, escaped(entry.path.as_os_str()));
        self.text.extend_from_slice(line.as_bytes());
        if let Kind::Link(target) = &entry.kind {
            self.text.extend_from_slice(format!(" -> {}", escaped(target.as_os_str())).as_bytes());
        }
        self.text.push(b'\n');
        Ok(())
    }

    /// Returns the list, the number of files and their bytes.
    pub(super) fn end(self) -> (Vec<u8>, u64, u64) {
        (self.text, self.files, self.bytes)
    }
}

fn escaped(name: &OsStr) -> String {
    name.as_bytes().escape_ascii().to_string()
}

struct Hashed<'a> {
    content: &'a mut dyn Read,
    context: Context,
    bytes: u64,
    progress: &'a mut Progress,
    failed: bool,
}

impl Read for Hashed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer);
        self.failed = read.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        let bytes = read?;
        self.context.update(&buffer[..bytes]);
        self.bytes += bytes as u64;
        self.progress.add(bytes as u64);
        Ok(bytes)
    }
}

/// Returns the path of each entry that is not the same in both lists, and what is wrong with the entry.
pub(super) fn differences(kept: &[u8], found: &[u8]) -> Vec<(String, String)> {
    let (kept, found) = (by_path(kept), by_path(found));
    let differs = |(path, line): (&String, &&[u8])| match found.get(path) {
        None => Some((path.clone(), "is missing".to_owned())),
        Some(other) if other == line => None,
        Some(_) => Some((path.clone(), format!("differs from `{NAME}`"))),
    };
    let unknown = found.keys().filter(|path| !kept.contains_key(*path));
    let unknown = unknown.map(|path| (path.clone(), format!("is not in `{NAME}`")));
    kept.iter().filter_map(differs).chain(unknown).collect()
}

/// Returns the lines of a list by the paths of their entries.
fn by_path(list: &[u8]) -> BTreeMap<String, &[u8]> {
    let lines = list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let text = String::from_utf8_lossy(line);
            let entry = text.splitn(5, ' ').last().unwrap_or_default();
            let is_link = text.starts_with("link ");
            let path = entry.split_once(" -> ").filter(|_| is_link).map_or(entry, |(path, _)| path);
            (path.to_owned(), line)
        })
        .collect()
}

/// Returns the first line that is only in one of the lists.
pub(super) fn first_difference(kept: &[u8], found: &[u8]) -> Option<String> {
    let (mut kept, mut found) = (kept.split(|&byte| byte == b'\n'), found.split(|&byte| byte == b'\n'));
    loop {
        match (kept.next(), found.next()) {
            (None, None) => return None,
            (one, other) if one == other => {}
            (one, other) => {
                let line = one.filter(|line| !line.is_empty()).or(other).unwrap_or_default();
                return Some(String::from_utf8_lossy(line).into_owned());
            }
        }
    }
}
