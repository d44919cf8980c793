//! A log as whoever copies it has to see it: while the server goes on, none of its files goes, and what is durable now is
//! all that counts.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error::from_io;
use super::log::end_file::EndFile;
use super::log::names;
use crate::StoreError;

/// A file of a log.
#[derive(Clone, Debug)]
pub struct HeldFile {
    /// Its name in the folder of the log.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// How many of its bytes belong to the copy; what follows is still being written.
    pub bytes: u64,
}

/// A log whose files stay where they are until this is dropped. It grows meanwhile.
#[derive(Debug)]
pub struct HeldLog {
    // The system drops the lock with the file.
    _hold: Option<File>,
    /// What to copy, oldest first.
    pub files: Vec<HeldFile>,
}

/// Holds the log of a data folder, also that of a running server. Waits until no file of it is on its way out.
///
/// The copy ends where the log was durable when it was held: a reader that is slower than the writer could otherwise see
/// a later frame without the ones before it, which is what damage looks like.
pub fn hold_log(dir: &Path) -> Result<HeldLog, StoreError> {
    let log = dir.join(names::LOG);
    let unusable = |what: String| StoreError::Unusable(format!("the data folder {} {what}", dir.display()));
    if !log.is_dir() {
        return Err(unusable("has no `log`; name the data folder of a server".to_owned()));
    }
    let hold = match File::open(log.join(names::COPY_LOCK)) {
        Ok(hold) => Some(hold),
        // No server has opened it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unusable(format!("cannot be read: {error}"))),
    };
    if let Some(hold) = &hold {
        hold.lock_shared().map_err(|error| unusable(format!("cannot be held: {error}")))?;
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
    Ok(HeldLog { _hold: hold, files })
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
    async fn a_copy_of_a_log_that_is_written_has_what_was_durable_and_nothing_torn() {
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
            // The note of the last commit is written behind its answer.
            let number = |name: &str| settings.get(name).map(|value| u32::from(value[0]));
            for name in ["s0", "s1", "s2", "s3"] {
                assert_eq!(number(name), Some(round), "{name}");
            }
        }
    }

    #[test]
    fn a_folder_without_a_log_is_no_data_folder() {
        let dir = tempfile::tempdir().unwrap();
        let error = hold_log(dir.path()).unwrap_err().to_string();
        assert!(error.contains("name the data folder of a server"), "{error}");
    }
}
