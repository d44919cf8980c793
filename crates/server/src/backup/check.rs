//! Verifies a backup for `longshore store verify`, and reports every damaged entry.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use longshore_store::Verified;

use super::entry::{Entry, Sink};
use super::progress::Progress;
use super::verify::CheckedData;
use super::{BackupError, DATA, Done, list, manifest, read_entries};

/// A backup that was read.
pub(crate) struct CheckedBackup {
    /// The number of files that the backup should have.
    pub(crate) files: u64,
    /// The bytes of these files.
    pub(crate) bytes: u64,
    /// The result of the store's own check.
    pub(crate) verified: Verified,
    /// The damaged places, with paths relative to the backup.
    pub(crate) damages: Vec<String>,
}

/// Whether `path` may be a backup, complete or not: a file, or a directory with the files of a backup.
pub(crate) fn is_backup(path: &Path) -> bool {
    let has = |name: &str| path.join(name).exists();
    path.is_file() || !has("log") && !has("log-end") && [manifest::NAME, list::NAME].into_iter().any(has)
}

/// Compares each entry of a backup with its list, and verifies the log and the large payloads. Changes nothing; the log
/// of an archive is copied to the directory for temporary files.
///
/// # Errors
/// [`BackupError::NotWhole`] if the manifest, the list or the archive cannot be read.
pub(crate) fn check(backup: &Path) -> Done<CheckedBackup> {
    let mut progress = Progress::new("reading", 0);
    let (read, verified) = if backup.is_dir() {
        let read = read_entries(backup, false, &mut Discard, &mut progress)?;
        (read, longshore_store::verify(&backup.join(DATA))?)
    } else {
        let temporary = std::env::temp_dir();
        let scratch = tempfile::Builder::new().prefix("longshore-verify-").tempdir_in(&temporary);
        let scratch = scratch.map_err(BackupError::io("write", &temporary))?;
        let mut data = CheckedData::in_folder(scratch.path());
        let read = read_entries(backup, true, &mut data, &mut progress)?;
        (read, data.verify()?)
    };
    progress.end();
    let in_log: Vec<_> = verified.damages.iter().map(|damage| format!("{DATA}/{}", damage.file)).collect();
    let named: BTreeSet<&str> = in_log.iter().map(String::as_str).collect();
    let differences = list::differences(&read.kept_list, &read.found_list);
    let differences = differences.into_iter().filter(|(path, _)| !named.contains(path.as_str()));
    let mut damages: Vec<_> = differences.map(|(path, what)| format!("{path}: {what}")).collect();
    damages.extend(verified.damages.iter().map(|damage| format!("{DATA}/{damage}")));
    Ok(CheckedBackup { files: read.manifest.files, bytes: read.manifest.bytes, verified, damages })
}

/// Keeps nothing: only the hashes of the entries are needed.
struct Discard;

impl Sink for Discard {
    fn put(&mut self, _: &Entry, _: &mut dyn Read) -> Done<()> {
        Ok(())
    }
}
