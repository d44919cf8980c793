//! Large payloads as files beside the store.
//!
//! A large payload in a row would delay every later commit, so its bytes become a blob and the row has the blob's name.
//! The order makes this safe: put the blob, then commit the row; commit the row's deletion, then delete the blob. A crash
//! in between leaves a blob without a row, never a row without a blob. [`Blobs::list`] finds such orphans.
//!
//! [`DirBlobs`] stores blobs in a local directory, [`MemoryBlobs`] in memory for tests and the simulator. Blobs in object
//! storage are in a crate of their own; [`RemoteBlobs`] is what such a storage adds.

mod dir;
mod memory;
mod name;
mod remote;

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;

pub use dir::{COPY_LOCK, DirBlobs};
pub use memory::MemoryBlobs;
pub use name::check_name;
pub use remote::{BlobListing, RemoteBlobs, RemoteHealth, StoredBlob};

/// The future that a [`Blobs`] method returns. It is boxed, so that the engine can use any implementation as `dyn Blobs`.
pub type BlobFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BlobError>> + Send + 'a>>;

/// Why a [`Blobs`] call failed. After a failed put the name has its former bytes, all of the new ones, or none.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BlobError {
    /// The name is not a valid blob name. The text is the name, truncated to 255 characters.
    #[error(
        "`{0}` cannot name a blob: it must be like `7/x.input`, of letters, digits and `_ - . :`, no part starting with a dot"
    )]
    Name(String),
    /// The disk is full. Retry when there is free space.
    #[error("the disk of the blob directory is full: {0}; free some space on it")]
    Full(String),
    /// A file operation failed. The text names the blob and the cause.
    #[error("a blob cannot be read or written: {0}")]
    Io(String),
    /// The place is not that of this installation's blobs. The text says why, and what to do.
    #[error("{0}")]
    Place(String),
}

impl BlobError {
    fn from_io(what: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full(format!("{what}: {error}"))
            }
            _ => Self::Io(format!("{what}: {error}")),
        }
    }
}

/// A storage of blobs. One value serves the whole process; every method may be called from many tasks concurrently.
///
/// A name is one or more parts joined by `/`, such as `7/x.input`, of at most 255 bytes. Each part consists of
/// `A-Z a-z 0-9 _ - . :` and does not start with a dot. The engine never reuses a name for other bytes.
///
/// Every method fails with [`BlobError::Name`] for an invalid name and with [`BlobError::Io`] if a file operation fails.
pub trait Blobs: Send + Sync + 'static {
    /// Stores the bytes under the name. `Ok` means that neither a crash nor a power cut can lose the bytes. After an error
    /// or a crash the name has either all of them or none.
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()>;

    /// Returns the bytes of a blob; `None` if there is no such blob.
    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>>;

    /// Deletes a blob. Succeeds if there is no such blob.
    fn delete(&self, name: &str) -> BlobFuture<'_, ()>;

    /// Returns the full names of all blobs directly in a folder, ascending: `list("7")` returns names such as
    /// `7/x.input`. Empty if there is no such folder.
    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>>;

    /// Returns the first parts of all names with more than one part, ascending: the arguments for [`Blobs::list`].
    fn folders(&self) -> BlobFuture<'_, Vec<String>>;

    /// What a storage outside of this computer adds; `None` for one of this computer.
    fn remote(&self) -> Option<&dyn RemoteBlobs> {
        None
    }
}
