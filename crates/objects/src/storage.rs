//! Objects below one prefix: every call has a deadline and a place among the calls in flight.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use longshore_blobs::{BlobListing, RemoteHealth, StoredBlob};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};

use crate::ObjectError;
use crate::health::Health;
use crate::upload;

/// Calls in flight. Further ones wait for their turn.
const CALLS_MAX: usize = 64;
/// Calls of deletions in flight, apart from the others: deletions can wait, and readers cannot.
const DELETIONS_MAX: usize = 8;
/// Objects of one request of a deletion.
const DELETED_AT_ONCE: usize = 1_000;
/// Longest time of a call, with its retries, apart from the time for its bytes.
const CALL_SECONDS: u64 = 30;
/// The rate in bytes per second that every call has time for.
const RATE: u64 = 256 << 10;
/// Largest object that is read into memory. The largest payload has 20 MB, the largest archive of code 100 MB.
const OBJECT_BYTES_MAX: u64 = 256 << 20;
/// Objects of one page of a listing.
const PAGE: usize = 1_000;

/// Objects below the prefix of a place. Clones share it.
#[derive(Clone)]
pub struct Storage {
    store: Arc<dyn ObjectStore>,
    /// The prefix of all names; empty for a directory.
    prefix: String,
    /// The place, as operators are told it.
    address: Arc<str>,
    calls: Arc<Semaphore>,
    deletions: Arc<Semaphore>,
    health: Arc<Health>,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Storage").field(&self.address).finish()
    }
}

impl Storage {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, prefix: &str, address: &str) -> Self {
        let [calls, deletions] = [CALLS_MAX, DELETIONS_MAX].map(|max| Arc::new(Semaphore::new(max)));
        Self {
            store,
            prefix: prefix.to_owned(),
            address: address.into(),
            calls,
            deletions,
            health: Arc::default(),
        }
    }

    /// The place, without secrets.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// How the calls went since the start.
    pub(crate) fn health(&self) -> RemoteHealth {
        self.health.read()
    }

    /// Stores an object; a longer one in parts. `Ok` means that the storage has it durably. After an error there may be
    /// all of it, or what there was before.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let _place = self.place().await?;
        let path = self.path(name)?;
        let seconds = seconds_for(bytes.len() as u64);
        self.within(seconds, upload::put(self.store.as_ref(), &path, bytes)).await
    }

    /// Reads an object; `None` if there is none.
    pub(crate) async fn get(&self, name: &str) -> Result<Option<Bytes>, ObjectError> {
        let _place = self.place().await?;
        let path = self.path(name)?;
        let found = match self.within(CALL_SECONDS, self.store.get(&path)).await {
            Err(ObjectError::NotFound(_)) => return Ok(None),
            found => found?,
        };
        let size = found.meta.size;
        if size > OBJECT_BYTES_MAX {
            return Err(ObjectError::Failed(format!(
                "has {size} bytes, more than the limit of {OBJECT_BYTES_MAX}"
            )));
        }
        self.within(seconds_for(size), found.bytes()).await.map(Some)
    }

    /// Deletes an object. Succeeds if there is none.
    pub(crate) async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        let _place = self.place().await?;
        let path = self.path(name)?;
        match self.within(CALL_SECONDS, self.store.delete(&path)).await {
            Err(ObjectError::NotFound(_)) => Ok(()),
            deleted => deleted,
        }
    }

    /// Deletes objects, many in one request. Names without an object are no error. After an error, some may be deleted.
    pub(crate) async fn delete_all(&self, names: &[String]) -> Result<(), ObjectError> {
        let _place = self.deletions.acquire().await;
        for names in names.chunks(DELETED_AT_ONCE) {
            let paths: Vec<_> = names.iter().map(|name| self.path(name)).collect::<Result<_, _>>()?;
            let paths = stream::iter(paths.into_iter().map(Ok)).boxed();
            let mut deleted = self.store.delete_stream(paths);
            while let Some(result) = self.health.note(timed(CALL_SECONDS, deleted.next()).await)? {
                match self.health.note(result.map_err(|error| ObjectError::of(&error))) {
                    Ok(_) | Err(ObjectError::NotFound(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The time of an object's last change, by the clock of the storage.
    pub(crate) async fn modified_ms(&self, name: &str) -> Result<u64, ObjectError> {
        let _place = self.place().await?;
        let path = self.path(name)?;
        Ok(modified_ms(&self.within(CALL_SECONDS, self.store.head(&path)).await?))
    }

    /// The names of the objects directly in a folder, ascending, and of the folders in it, ascending.
    pub(crate) async fn list(&self, folder: &str) -> Result<(Vec<String>, Vec<String>), ObjectError> {
        let _place = self.place().await?;
        let path = self.path(folder)?;
        let found = self.within(CALL_SECONDS, self.store.list_with_delimiter(Some(&path))).await?;
        let last = |path: &Path| path.filename().map(str::to_owned);
        let mut objects: Vec<String> = found.objects.iter().filter_map(|meta| last(&meta.location)).collect();
        let mut folders: Vec<String> = found.common_prefixes.iter().filter_map(last).collect();
        objects.sort_unstable();
        folders.sort_unstable();
        Ok((objects, folders))
    }

    /// Lists everything below a folder, a page at a time. The pages end with an error, or after the last object. At most two
    /// pages are in memory. Must be called inside a Tokio runtime.
    pub(crate) fn pages(&self, folder: &str) -> BlobListing {
        let (sender, receiver) = mpsc::channel(1);
        let path = self.path(folder);
        let (storage, folder) = (self.clone(), self.full(folder));
        tokio::spawn(async move {
            let sent = async {
                let mut found = storage.store.list(Some(&path?)).chunks(PAGE);
                while let Some(page) = storage.health.note(timed(CALL_SECONDS, found.next()).await)? {
                    let page: Result<Vec<_>, _> = page.into_iter().collect();
                    let page = storage.health.note(page.map_err(|error| ObjectError::of(&error)))?;
                    let page = page.iter().filter_map(|meta| listed(&folder, meta)).collect();
                    if sender.send(Ok(page)).await.is_err() {
                        break;
                    }
                }
                Ok::<(), ObjectError>(())
            };
            if let Err(error) = sent.await {
                // The reader may have gone.
                let what = format!("{}/{folder} cannot be listed", storage.address());
                let _ = sender.send(Err(error.about(&what))).await;
            }
        });
        receiver
    }

    async fn place(&self) -> Result<SemaphorePermit<'_>, ObjectError> {
        let place = timed(CALL_SECONDS, self.calls.acquire()).await?;
        place.map_err(|_| ObjectError::Failed("the storage is closed".to_owned()))
    }

    /// Awaits a call of the storage, and notes how it went.
    async fn within<T>(
        &self,
        seconds: u64,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, ObjectError> {
        let outcome = timed(seconds, call).await;
        self.health.note(outcome.and_then(|answer| answer.map_err(|error| ObjectError::of(&error))))
    }

    fn full(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) }
    }

    fn path(&self, name: &str) -> Result<Path, ObjectError> {
        Path::parse(self.full(name)).map_err(|error| ObjectError::Failed(error.to_string()))
    }
}

fn listed(folder: &str, meta: &ObjectMeta) -> Option<StoredBlob> {
    let name = meta.location.as_ref().strip_prefix(folder)?.strip_prefix('/')?;
    Some(StoredBlob { name: name.to_owned(), modified_ms: modified_ms(meta) })
}

fn modified_ms(meta: &ObjectMeta) -> u64 {
    u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or_default()
}

fn seconds_for(bytes: u64) -> u64 {
    CALL_SECONDS + bytes / RATE
}

async fn timed<T>(seconds: u64, call: impl Future<Output = T>) -> Result<T, ObjectError> {
    tokio::time::timeout(Duration::from_secs(seconds), call)
        .await
        .map_err(|_| ObjectError::no_answer(seconds))
}
