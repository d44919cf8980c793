//! Errors of the database as errors of a store.

use longshore_store::StoreError;
use tokio_postgres::error::SqlState;

/// Translates the error of a statement. No text has a value of a row: PostgreSQL's details, which can quote one, are left out.
pub(crate) fn store_error(error: &tokio_postgres::Error) -> StoreError {
    let Some(db) = error.as_db_error() else {
        return StoreError::Io(format!("the connection to the database failed: {}", with_cause(error)));
    };
    match *db.code() {
        SqlState::DISK_FULL => StoreError::Full(format!("the database says: {}", db.message())),
        SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::Io(
            "the database is read-only now, as a standby is; the connection is made anew to find the primary"
                .to_owned(),
        ),
        _ => StoreError::Io(format!("the database says: {} ({})", db.message(), db.code().code())),
    }
}

/// Whether the connection must be made anew: it is closed, the database shuts down, or it became a standby.
pub(crate) fn breaks_connection(error: &tokio_postgres::Error) -> bool {
    let Some(code) = error.code() else { return true };
    error.is_closed()
        || [
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::IDLE_SESSION_TIMEOUT,
        ]
        .contains(code)
}

/// Returns the error's text with the texts of its causes.
pub(crate) fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}
