//! Transactions of other programs that stay open: until they end, the database removes no row that was deleted after their begin.

use std::sync::Arc;
use std::time::Duration;

use longshore_store::StoreError;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use crate::error::store_error;
use crate::reader::Readers;

/// How often the transactions are looked at, as a part of the age from which one is old.
const LOOKS: u32 = 5;

/// The oldest transaction of the database: its place in the order of transactions, its session, and what that calls itself. The times of
/// other users' sessions are hidden from a user without privileges, and these are not.
const OLDEST: &str = "SELECT held, pid, coalesce(application_name, '') FROM ( \
        SELECT greatest(age(backend_xid), age(backend_xmin)) AS age, \
            coalesce(backend_xmin::text, '') || ' ' || coalesce(backend_xid::text, '') AS held, pid, application_name \
        FROM pg_stat_activity WHERE datname = current_database() AND usesysid IS NOT NULL AND pid <> pg_backend_pid() \
        UNION ALL \
        SELECT age(transaction), transaction::text, 0, 'prepared transaction ' || gid FROM pg_prepared_xacts \
        WHERE database = current_database() \
    ) held WHERE age IS NOT NULL ORDER BY age DESC LIMIT 1";

/// A transaction that has been open for a long time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldTransaction {
    /// The database's process of the session; 0 for a prepared transaction.
    pub pid: i32,
    /// The name that the session's program gave itself.
    pub application: String,
    /// What of the database's order of transactions it holds.
    held: String,
}

impl OldTransaction {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { held: row.try_get(0)?, pid: row.try_get(1)?, application: row.try_get(2)? })
    }
}

/// Calls `tell` once for each transaction that was the oldest one for `age`, for ever.
pub(crate) async fn watch(readers: Arc<Readers>, age: Duration, tell: impl Fn(OldTransaction)) {
    let mut known: Option<(OldTransaction, Instant, bool)> = None;
    loop {
        sleep(age / LOOKS).await;
        // A database that is away is known elsewhere.
        let Ok(oldest) = oldest(&readers).await else { continue };
        known = match (oldest, known) {
            (None, _) => None,
            (Some(oldest), Some((before, since, was_told))) if before == oldest => {
                let is_old = since.elapsed() >= age;
                if is_old && !was_told {
                    tell(oldest.clone());
                }
                Some((oldest, since, was_told || is_old))
            }
            (Some(oldest), _) => Some((oldest, Instant::now(), false)),
        };
    }
}

async fn oldest(readers: &Readers) -> Result<Option<OldTransaction>, StoreError> {
    let session = readers.session().await?;
    let row = session.client.query_opt(OLDEST, &[]).await.map_err(|error| store_error(&error))?;
    row.as_ref().map(OldTransaction::of).transpose().map_err(|error| store_error(&error))
}
