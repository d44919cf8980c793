//! Checks that the store in a backup can be opened.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use longshore_store::{BlobCheck, Verified};

use super::entry::{Entry, Kind, Sink};
use super::folder::FolderWriter;
use super::{BackupError, DATA, Done};

/// Bytes per read.
const PIECE_BYTES: usize = 1 << 20;

/// The parts of a backup that the store's check needs: the log, and the damage of each large payload.
pub(super) struct CheckedData {
    folder: PathBuf,
    writer: FolderWriter,
    blobs: HashMap<String, Blob>,
}

/// A large payload that was read.
struct Blob {
    bytes: u64,
    damage: Option<String>,
}

impl CheckedData {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), writer: FolderWriter::new(folder), blobs: HashMap::new() }
    }

    /// Checks the store and returns its number of jobs.
    pub(super) fn check(&self) -> Done<u64> {
        jobs(&self.verify()?)
    }

    /// Reads the whole store and checks every record. Changes nothing.
    pub(super) fn verify(&self) -> Done<Verified> {
        Ok(longshore_store::verify_with(&self.folder, |name, bytes| self.check_blob(name, bytes))?)
    }

    fn check_blob(&self, name: &str, bytes: u64) -> Result<(), String> {
        match self.blobs.get(name) {
            None => Err("the payload is not in the backup".to_owned()),
            Some(blob) if blob.bytes != bytes => {
                Err(format!("the payload has {} bytes instead of {bytes}", blob.bytes))
            }
            Some(Blob { damage: Some(what), .. }) => Err(format!("the payload {what}")),
            Some(_) => Ok(()),
        }
    }
}

impl Sink for CheckedData {
    fn put(&mut self, entry: &Entry, content: &mut dyn Read) -> Done<()> {
        let Ok(inner) = entry.path.strip_prefix(DATA) else { return Ok(()) };
        if inner.starts_with("log") {
            return self.writer.put(&Entry { path: inner.to_owned(), ..entry.clone() }, content);
        }
        // Names of payloads are always text.
        if entry.kind == Kind::File
            && let Ok(blob) = inner.strip_prefix("blobs")
            && let Some(name) = blob.to_str()
        {
            let mut check = BlobCheck::new(name, entry.bytes);
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                match content.read(&mut piece).map_err(BackupError::io("read", &entry.path))? {
                    0 => break,
                    read => check.add(&piece[..read]),
                }
            }
            self.blobs.insert(name.to_owned(), Blob { bytes: entry.bytes, damage: check.end().err() });
        }
        Ok(())
    }
}

/// Checks the store in a data directory and returns its number of jobs.
pub(super) fn store_in(data: &Path) -> Done<u64> {
    jobs(&longshore_store::verify(data)?)
}

fn jobs(verified: &Verified) -> Done<u64> {
    match verified.damages.first() {
        None => Ok(verified.jobs),
        Some(damage) => Err(BackupError::Damaged(damage.to_string())),
    }
}
