//! Deployed code as objects: the archive in which it was sent, and a note about it, both under the hash of the archive.

use bytes::Bytes;

use crate::{ObjectError, Storage};

/// The folder of code below the prefix.
const FOLDER: &str = "code";
/// Suffix of an archive.
const ARCHIVE: &str = "tgz";
/// Suffix of a note.
const NOTE: &str = "json";

/// Deployed code as objects below a prefix.
#[derive(Clone, Debug)]
pub struct CodeObjects {
    storage: Storage,
}

impl CodeObjects {
    /// The code of a storage. Nothing is read yet.
    pub fn new(storage: Storage) -> Self {
        Self { storage }
    }

    /// Stores an archive, and then its note: code without a note is incomplete.
    ///
    /// # Errors
    /// What the storage answered.
    pub async fn put(&self, hash: &str, archive: Bytes, note: Bytes) -> Result<(), ObjectError> {
        self.storage.put(&object(hash, ARCHIVE), archive).await?;
        self.storage.put(&object(hash, NOTE), note).await
    }

    /// Reads an archive; `None` if there is none.
    ///
    /// # Errors
    /// What the storage answered.
    pub async fn archive(&self, hash: &str) -> Result<Option<Bytes>, ObjectError> {
        self.storage.get(&object(hash, ARCHIVE)).await
    }

    /// Reads the note of an archive; `None` if there is none.
    ///
    /// # Errors
    /// What the storage answered.
    pub async fn note(&self, hash: &str) -> Result<Option<Bytes>, ObjectError> {
        self.storage.get(&object(hash, NOTE)).await
    }

    /// The hashes of the archives that have a note, each with the time of its note in ms since the epoch.
    ///
    /// # Errors
    /// What the storage answered.
    pub async fn hashes(&self) -> Result<Vec<(String, u64)>, ObjectError> {
        let mut pages = self.storage.pages(FOLDER);
        let mut hashes = Vec::new();
        while let Some(page) = pages.recv().await {
            let page = page.map_err(|error| ObjectError::Failed(error.to_string()))?;
            hashes.extend(page.into_iter().filter_map(|object| {
                let (hash, suffix) = object.name.split_once('.')?;
                (suffix == NOTE).then(|| (hash.to_owned(), object.modified_ms))
            }));
        }
        Ok(hashes)
    }

    /// Deletes the note of an archive, and then the archive.
    ///
    /// # Errors
    /// What the storage answered.
    pub async fn remove(&self, hash: &str) -> Result<(), ObjectError> {
        self.storage.delete(&object(hash, NOTE)).await?;
        self.storage.delete(&object(hash, ARCHIVE)).await
    }

    /// The present time by the clock of the storage, in ms since the epoch.
    ///
    /// # Errors
    /// What the storage answered.
    pub async fn clock_ms(&self) -> Result<u64, ObjectError> {
        self.storage.clock_ms().await
    }
}

fn object(hash: &str, suffix: &str) -> String {
    format!("{FOLDER}/{hash}.{suffix}")
}
