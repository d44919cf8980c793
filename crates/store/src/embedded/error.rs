//! From the system's words to the store's.

use std::io;

use crate::StoreError;

/// What a failed operation on a file of the log means to the caller.
pub(super) fn from_io(error: &io::Error) -> StoreError {
    if is_full(error) {
        StoreError::Full(format!("{error}; free some space on it"))
    } else {
        StoreError::Io(error.to_string())
    }
}

/// Whether there is no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Bytes in a segment that no version of this program writes.
pub(super) fn corrupt(segment: u64, at: impl Into<u64>, what: impl std::fmt::Display) -> StoreError {
    let (file, at) = (super::log::names::segment(segment), at.into());
    StoreError::Corrupt(format!(
        "`log/{file}`, byte {at}: {what}; restore the data folder from a backup, or keep what can be read with \
         `longshore store recover`"
    ))
}
