//! Big payloads as files beside the store.
//!
//! A row holds small payloads itself; a big one would hold up every commit behind it, so its bytes become a blob
//! first and the row keeps the name. The order is what makes it safe: put the blob, then commit the row; commit the
//! row's deletion, then delete the blob. A crash in between leaves a blob without a row, never a row without a
//! blob; [`Blobs::list`] finds such orphans.
//!
//! [`DirBlobs`] keeps them in a local folder, [`MemoryBlobs`] in memory for tests and the simulator.

mod dir;
mod memory;
mod name;

use std::future::Future;
use std::io;
use std::pin::Pin;

use bytes::Bytes;

pub use dir::{COPY_LOCK, DirBlobs};
pub use memory::MemoryBlobs;

/// What a [`Blobs`] method returns: boxed, so that the engine can hold any of them behind one pointer.
pub type BlobFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, BlobError>> + Send + 'a>>;

/// Why a blob could not be kept, read or deleted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BlobError {
    /// The name is not one that a blob can have.
    #[error(
        "`{0}` cannot name a blob: it must be like `7/x.input`, of letters, digits and `_ - . :`, no part starting with a dot"
    )]
    Name(String),
    /// The disk is full.
    #[error("the disk of the blob folder is full: {0}; free some space on it")]
    Full(String),
    /// Reading or writing failed.
    #[error("a blob cannot be read or written: {0}")]
    Io(String),
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

/// A place for blobs. Cheap to share; every method may be called from many tasks at once.
///
/// A name is one or more parts joined by `/`, such as `7/x.input`; each part is of `A-Z a-z 0-9 _ - . :`
/// and starts with no dot. Whoever chooses names never reuses one for other bytes.
pub trait Blobs: Send + Sync + 'static {
    /// Keeps the bytes. When this returns `Ok`, neither a crash nor a power cut can lose them; after an error or a
    /// crash before that, the name has either all of them or nothing.
    fn put(&self, name: &str, bytes: Bytes) -> BlobFuture<'_, ()>;

    /// The bytes, if the name has some.
    fn get(&self, name: &str) -> BlobFuture<'_, Option<Bytes>>;

    /// Removes the blob. No such blob: nothing happens.
    fn delete(&self, name: &str) -> BlobFuture<'_, ()>;

    /// The full names of all blobs directly in a folder, sorted: `list("7")` answers `7/x.input` and its like.
    fn list(&self, folder: &str) -> BlobFuture<'_, Vec<String>>;

    /// The first parts of all names that have more than one, sorted: what [`Blobs::list`] can be asked for.
    fn folders(&self) -> BlobFuture<'_, Vec<String>>;
}
