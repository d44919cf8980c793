//! From `SQLite`'s words to the store's.

use rusqlite::ErrorCode;

use crate::StoreError;

/// What a failed statement means to the caller.
pub(super) fn from_sqlite(error: &rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(format!("{error}; free some space on it")),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt(format!("{error}; the database file is damaged, restore it from a backup"))
        }
        _ => StoreError::Io(error.to_string()),
    }
}

/// A row that no version of this program writes.
pub(super) fn corrupt(table: &str, key: impl std::fmt::Display, what: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("table `{table}`, key {key}: {what}"))
}
