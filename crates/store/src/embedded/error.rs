//! Conversions of I/O errors and damage to [`StoreError`].

use std::io;

use crate::StoreError;

/// Returns [`StoreError::Full`] for a full disk or an exhausted quota, [`StoreError::Io`] for any other error.
pub(super) fn from_io(error: &io::Error) -> StoreError {
    if is_full(error) {
        StoreError::Full(format!("{error}; free some space on it"))
    } else {
        StoreError::Io(error.to_string())
    }
}

/// Whether the disk is full or the quota is exhausted.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the error for a segment that has bytes at `at` that no version of this program writes.
pub(super) fn corrupt(segment: u64, at: impl Into<u64>, what: impl std::fmt::Display) -> StoreError {
    let (file, at) = (super::log::names::segment(segment), at.into());
    StoreError::Corrupt(format!(
        "`log/{file}`, byte {at}: {what}; restore the data directory from a backup, or keep what can be read with \
         `longshore store recover`"
    ))
}
