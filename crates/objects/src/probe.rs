//! The check of a place: an object is written, read and deleted.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::{ObjectError, Storage};

impl Storage {
    /// Writes an object, reads it and deletes it, as a server does with payloads.
    ///
    /// # Errors
    /// What failed, why, and what to do.
    pub async fn probe(&self) -> Result<(), String> {
        let name = probe_name();
        let bytes = Bytes::from_static(b"longshore probes that it may write, read and delete here\n");
        let about = |what: &str, error: &ObjectError| {
            format!(
                "{} cannot be used: an object could not be {what}: {error}; {}",
                self.address(),
                advice(error)
            )
        };
        self.put(&name, bytes.clone()).await.map_err(|error| about("written", &error))?;
        match self.get(&name).await.map_err(|error| about("read", &error))? {
            Some(read) if read == bytes => {}
            _ => {
                return Err(format!(
                    "{} cannot be used: an object that was written could not be read immediately",
                    self.address()
                ));
            }
        }
        self.delete(&name).await.map_err(|error| about("deleted", &error))
    }

    /// The present time by the clock of the storage, in ms since the epoch.
    pub(crate) async fn clock_ms(&self) -> Result<u64, ObjectError> {
        let name = probe_name();
        self.put(&name, Bytes::from_static(b"clock\n")).await?;
        let now = self.modified_ms(&name).await;
        self.delete(&name).await?;
        now
    }
}

/// A name that no other probe has.
fn probe_name() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("probe/{}-{}", since_epoch.as_nanos(), std::process::id())
}

fn advice(error: &ObjectError) -> &'static str {
    match error {
        ObjectError::NotFound(_) => "create the bucket, or correct its name in `blobs`",
        ObjectError::NotPermitted(_) => {
            "check the keys in the file of `blobs_credentials_file`, and that they may put, get, delete and list objects"
        }
        ObjectError::Failed(_) => "check that this computer reaches the address in `blobs`, and its region",
    }
}
