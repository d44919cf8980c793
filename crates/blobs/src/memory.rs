//! Blobs in memory, for tests and the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::name::check_name;
use crate::{BlobError, BlobFuture, Blobs};

/// Blobs in memory. They are gone when this value is dropped.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<String, Bytes>>,
}

impl MemoryBlobs {
    /// Creates an empty storage.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&str, MutexGuard<'_, BTreeMap<String, Bytes>>) -> T,
    ) -> BlobFuture<'static, T> {
        let result = check_name(name)
            .map(|name| work(name, self.blobs.lock().unwrap_or_else(PoisonError::into_inner)));
        Box::pin(ready(result))
    }
}

impl Blobs for MemoryBlobs {
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()> {
        self.with(name, |name, mut blobs| drop(blobs.insert(name.to_owned(), bytes)))
    }

    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>> {
        self.with(name, |name, blobs| blobs.get(name).cloned())
    }

    fn delete(&self, name: &str) -> BlobFuture<'_, ()> {
        self.with(name, |name, mut blobs| drop(blobs.remove(name)))
    }

    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>> {
        self.with(folder, |folder, blobs| {
            let inside = |name: &str| name.rsplit_once('/').is_some_and(|(parent, _)| parent == folder);
            blobs.keys().filter(|name| inside(name)).cloned().collect()
        })
    }

    fn folders(&self) -> BlobFuture<'_, Vec<String>> {
        let blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        let folders: BTreeSet<_> =
            blobs.keys().filter_map(|name| name.split_once('/')).map(|(first, _)| first).collect();
        let folders = folders.into_iter().map(str::to_owned).collect();
        Box::pin(ready(Ok::<_, BlobError>(folders)))
    }
}
