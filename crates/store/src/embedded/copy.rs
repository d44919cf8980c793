//! Copying the log of a running server: no segment is removed meanwhile, and the copy ends where the log was durable.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error::from_io;
use super::log::end_file::EndFile;
use super::log::names;
use crate::StoreError;

/// A segment file to copy.
#[derive(Clone, Debug)]
pub struct HeldFile {
    /// The file's name in the log's directory.
    pub name: String,
    /// The file's full path.
    pub path: PathBuf,
    /// The number of bytes to copy from the start of the file. Bytes behind them may still be written.
    pub bytes: u64,
}

/// A log of which no segment is removed until this value is dropped. The log grows meanwhile.
#[derive(Debug)]
pub struct HeldLog {
    // The kernel releases the lock when the file is closed.
    _copy_lock: Option<File>,
    /// The files to copy, the oldest segment first.
    pub files: Vec<HeldFile>,
}

/// Holds the log of the data directory `dir`, also that of a running server. Waits while the server removes a segment.
///
/// The copy ends where the log was durable when it was held, behind every synced commit that was acknowledged. A reader
/// that is slower than the writer could otherwise see a later frame without the earlier ones, which would look like damage.
///
/// # Errors
/// [`StoreError::Unusable`] if `dir` has no log or the log cannot be locked; [`StoreError::Corrupt`] if `log-end` is
/// damaged.
pub fn hold_log(dir: &Path) -> Result<HeldLog, StoreError> {
    let log = dir.join(names::LOG);
    let unusable =
        |what: String| StoreError::Unusable(format!("the data directory {} {what}", dir.display()));
    if !log.is_dir() {
        return Err(unusable("has no `log`; name the data directory of a server".to_owned()));
    }
    let copy_lock = match File::open(log.join(names::COPY_LOCK)) {
        Ok(file) => Some(file),
        // No server has opened the directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unusable(format!("cannot be read: {error}"))),
    };
    if let Some(file) = &copy_lock {
        file.lock_shared().map_err(|error| unusable(format!("cannot be locked for a copy: {error}")))?;
    }
    let end = EndFile::read(&log)?;
    let mut files = Vec::new();
    for number in names::numbers_in(&log).map_err(|error| from_io(&error))? {
        let name = names::segment(number);
        let path = log.join(&name);
        let bytes = fs::metadata(&path).map_err(|error| from_io(&error))?.len();
        match end {
            Some(end) if number > end.number => break,
            Some(end) if number == end.number => files.push(HeldFile { name, path, bytes: end.at }),
            _ => files.push(HeldFile { name, path, bytes }),
        }
    }
    Ok(HeldLog { _copy_lock: copy_lock, files })
}

#[cfg(test)]
mod tests {
    use longshore_model::{Durability, ShardId};

    use super::*;
    use crate::{Batch, EmbeddedStore, SegmentLimits, Store as _, Write, verify};

    fn copied(dir: &Path, to: &Path) {
        let held = hold_log(dir).unwrap();
        fs::create_dir_all(to.join(names::LOG)).unwrap();
        for file in &held.files {
            let bytes = fs::read(&file.path).unwrap();
            fs::write(to.join(names::LOG).join(&file.name), &bytes[..file.bytes as usize]).unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_copy_of_a_log_that_is_written_has_what_was_acknowledged_and_nothing_torn() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let limits = SegmentLimits { segment_bytes: 64 << 10, ..SegmentLimits::default() };
        let store = EmbeddedStore::open_with(&data, limits).unwrap();
        let epoch = store.claim_shards(vec![ShardId::CATALOG]).await.unwrap()[0];
        for round in 0..40_u32 {
            for number in 0..5 {
                let writes = vec![Write::PutSetting(format!("s{number}"), vec![round as u8; 3_000].into())];
                let batch = Batch { durability: Durability::Synced, writes, chain: None };
                store.commit(ShardId::CATALOG, epoch, batch).await.unwrap();
            }
            let copy = dir.path().join(format!("copy-{round}"));
            copied(&data, &copy);
            assert_eq!(verify(&copy).unwrap().damages, [], "round {round}");
            let opened = EmbeddedStore::open_with(&copy, limits).unwrap();
            let settings = opened.catalog().await.unwrap().settings;
            for name in ["s0", "s1", "s2", "s3", "s4"] {
                assert_eq!(settings.get(name).map(|value| u32::from(value[0])), Some(round), "{name}");
            }
        }
    }

    #[test]
    fn a_directory_without_a_log_is_no_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let error = hold_log(dir.path()).unwrap_err().to_string();
        assert!(error.contains("name the data directory of a server"), "{error}");
    }
}
