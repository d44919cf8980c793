//! Large payloads as objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use longshore_blobs::{BlobError, BlobFuture, BlobListing, Blobs, RemoteBlobs, RemoteHealth, check_name};

use crate::{ObjectError, Storage, marker};

/// The folder of payloads below the prefix.
const FOLDER: &str = "payloads";

/// Payloads as objects below a prefix. Clones share them. Must be used inside a Tokio runtime.
#[derive(Clone, Debug)]
pub struct ObjectBlobs {
    storage: Storage,
    /// The place had a marker. As long as it has one, a payload that is not there is missing.
    is_claimed: Arc<AtomicBool>,
}

impl ObjectBlobs {
    /// The payloads of a storage. Nothing is read yet.
    pub fn new(storage: Storage) -> Self {
        Self { storage, is_claimed: Arc::default() }
    }

    /// What an error says about a payload.
    fn about(&self, name: &str) -> impl Fn(ObjectError) -> BlobError {
        let what = format!("{}/{FOLDER}/{name}", self.storage.address());
        move |error| error.about(&what)
    }

    /// Fails if the marker is gone: a payload is not missing while its bucket is.
    async fn check_there(&self) -> Result<(), ObjectError> {
        if !self.is_claimed.load(Ordering::Relaxed) || marker::is_there(&self.storage).await? {
            return Ok(());
        }
        Err(ObjectError::Failed(
            "neither the payload nor longshore.json is there: the bucket was emptied".to_owned(),
        ))
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>, ObjectError> {
        let found = self.storage.get(&object(name)).await?;
        if found.is_none() {
            self.check_there().await?;
        }
        Ok(found)
    }
}

impl Blobs for ObjectBlobs {
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()> {
        let name = check_name(name).map(str::to_owned);
        Box::pin(async move {
            let name = name?;
            self.storage.put(&object(&name), bytes).await.map_err(self.about(&name))
        })
    }

    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>> {
        let name = check_name(name).map(str::to_owned);
        Box::pin(async move {
            let name = name?;
            self.read(&name).await.map_err(self.about(&name))
        })
    }

    fn delete(&self, name: &str) -> BlobFuture<'_, ()> {
        let name = check_name(name).map(str::to_owned);
        Box::pin(async move {
            let name = name?;
            self.storage.delete(&object(&name)).await.map_err(self.about(&name))
        })
    }

    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>> {
        let folder = check_name(folder).map(str::to_owned);
        Box::pin(async move {
            let folder = folder?;
            let (names, _) = self.storage.list(&object(&folder)).await.map_err(self.about(&folder))?;
            Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect())
        })
    }

    fn folders(&self) -> BlobFuture<'_, Vec<String>> {
        Box::pin(async move {
            self.storage.list(FOLDER).await.map(|(_, folders)| folders).map_err(self.about(""))
        })
    }

    fn remote(&self) -> Option<&dyn RemoteBlobs> {
        Some(self)
    }
}

impl RemoteBlobs for ObjectBlobs {
    fn address(&self) -> &str {
        self.storage.address()
    }

    fn claim(&self, installation: &str, is_new: bool) -> BlobFuture<'_, ()> {
        let installation = installation.to_owned();
        Box::pin(async move {
            marker::claim(&self.storage, &installation, is_new).await?;
            self.is_claimed.store(true, Ordering::Relaxed);
            Ok(())
        })
    }

    fn listing(&self) -> BlobListing {
        self.storage.pages(FOLDER)
    }

    fn health(&self) -> RemoteHealth {
        self.storage.health()
    }

    fn delete_all(&self, names: Vec<String>) -> BlobFuture<'_, ()> {
        let objects: Result<Vec<String>, BlobError> =
            names.iter().map(|name| check_name(name).map(object)).collect();
        Box::pin(async move {
            let objects = objects?;
            let about =
                format!("{}/{FOLDER}: {} payloads not deleted", self.storage.address(), objects.len());
            self.storage.delete_all(&objects).await.map_err(|error| error.about(&about))
        })
    }

    fn clock_ms(&self) -> BlobFuture<'_, u64> {
        Box::pin(async move { self.storage.clock_ms().await.map_err(self.about("")) })
    }
}

/// The name of the object of a payload.
fn object(name: &str) -> String {
    format!("{FOLDER}/{name}")
}
