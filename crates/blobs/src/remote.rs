//! Blobs outside of this computer: shared with other servers, slow to list, and backed up apart from the rows.

use tokio::sync::mpsc;

use crate::{BlobError, BlobFuture};

/// A blob of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// The full name, such as `7/x.input`.
    pub name: String,
    /// The time at which it was put, by the clock of the storage, in ms since the epoch.
    pub modified_ms: u64,
}

/// How the calls of a storage went since the start of this server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteHealth {
    /// When a call last succeeded, by the clock of this computer, in ms since the epoch; 0 if none has.
    pub last_success_ms: u64,
    /// When a call last failed, in the same way.
    pub last_failure_ms: u64,
    /// The number of calls that failed after their retries.
    pub failures: u64,
}

/// All blobs of a storage, a page at a time. Ends after the last page, or after an error.
pub type BlobListing = mpsc::Receiver<Result<Vec<StoredBlob>, BlobError>>;

/// What a storage outside of this computer adds to [`Blobs`](crate::Blobs).
///
/// Nothing lists its blobs while a queue is loaded: they are listed in the background, and orphans are told by their age. A
/// blob that is missing may come back, as when a bucket is restored after the rows, so that nothing is decided by it.
pub trait RemoteBlobs: Send + Sync {
    /// The place, without secrets.
    fn address(&self) -> &str;

    /// Notes in the storage that its blobs are those of `installation`. An installation that `is_new` there has put none yet.
    ///
    /// Fails with [`BlobError::Place`] if they are those of another installation, or of none although this one is not new.
    fn claim(&self, installation: &str, is_new: bool) -> BlobFuture<'_, ()>;

    /// Lists all blobs. Must be called inside a Tokio runtime.
    fn listing(&self) -> BlobListing;

    /// Deletes blobs, many in one request. Succeeds for names without a blob. After an error, some may be deleted.
    fn delete_all(&self, names: Vec<String>) -> BlobFuture<'_, ()>;

    /// The present time by the clock of the storage, in ms since the epoch.
    fn clock_ms(&self) -> BlobFuture<'_, u64>;

    /// How the calls of the storage went since the start.
    fn health(&self) -> RemoteHealth;
}
