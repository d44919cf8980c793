//! The lock that keeps a second server away from the database.
//!
//! The lock belongs to a session of the database and ends with its connection. It makes a mistake visible early; what protects
//! the rows are the epochs of the shards.

use std::time::Duration;

use longshore_store::StoreError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, Row};

use crate::connect::{Database, Role};
use crate::error::store_error;

/// How long a start waits for the lock: the database may notice the end of a killed server late.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);
/// How often the connection of the lock is checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Takes the lock of a schema, which may not exist yet.
const LOCK: &str =
    "SELECT pg_try_advisory_lock(hashtextextended('longshore ' || $1::text, 0)), pg_backend_pid()";
/// Who holds the lock: the process of the session, from where it came, and since when.
const HOLDER: &str = "SELECT lock.pid, coalesce(host(session.client_addr), 'a local socket'), session.backend_start::text \
    FROM pg_locks lock JOIN pg_database ON pg_database.oid = lock.database \
    LEFT JOIN pg_stat_activity session ON session.pid = lock.pid \
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1 AND pg_database.datname = current_database() \
        AND (lock.classid::int8 << 32 | lock.objid::int8) = hashtextextended('longshore ' || $1::text, 0)";

/// The lock, while its connection lives.
pub(crate) struct Held {
    pub client: Client,
    /// The database's process for the connection.
    pid: i32,
}

/// What an attempt to take the lock gave.
enum Attempt {
    Taken(Held),
    /// Another session holds it; its process is unknown if it ended meanwhile.
    HeldBy(Option<i32>, StoreError),
}

/// Takes the advisory lock of the schema.
///
/// # Errors
/// [`StoreError::Unusable`] if another server has held it for 10 s; it names that server's address.
pub(crate) async fn lock(database: &Database) -> Result<Held, StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt(database).await? {
            Attempt::Taken(held) => return Ok(held),
            Attempt::HeldBy(_, refusal) if Instant::now() >= deadline => return Err(refusal),
            Attempt::HeldBy(..) => sleep(PAUSE).await,
        }
    }
}

/// Keeps the lock: takes it again after its connection broke. Ends when another server has it, and says so to `lost`.
pub(crate) async fn keep(database: Database, mut held: Held, lost: watch::Sender<Option<StoreError>>) {
    loop {
        sleep(CHECK_INTERVAL).await;
        if !held.client.is_closed() {
            continue;
        }
        match attempt(&database).await {
            Ok(Attempt::Taken(again)) => held = again,
            Ok(Attempt::HeldBy(Some(pid), refusal)) if pid != held.pid => {
                lost.send_replace(Some(refusal));
                return;
            }
            // The database has not noticed yet that the earlier connection has ended.
            Ok(Attempt::HeldBy(..)) => {}
            Err(error) => tracing::debug!(%error, "the lock of the database cannot be taken yet"),
        }
    }
}

async fn attempt(database: &Database) -> Result<Attempt, StoreError> {
    let client = database.connect(Role::Lock).await?;
    let failed = |error: tokio_postgres::Error| store_error(&error);
    let row = client.query_one(LOCK, &[&database.schema()]).await.map_err(failed)?;
    if row.try_get(0).map_err(failed)? {
        let pid = row.try_get(1).map_err(failed)?;
        return Ok(Attempt::Taken(Held { client, pid }));
    }
    let holder = client.query_opt(HOLDER, &[&database.schema()]).await.map_err(failed)?;
    let pid = holder.as_ref().and_then(|holder| holder.try_get(0).ok());
    let of_holder = holder.as_ref().and_then(origin).unwrap_or_default();
    let address = database.address();
    let refusal = format!(
        "another server{of_holder} uses the database {address}; stop it first, or name another database"
    );
    Ok(Attempt::HeldBy(pid, StoreError::Unusable(refusal)))
}

/// Who holds the lock of the schema, as ` from ADDRESS, connected since TIME,`; `None` if the lock is free.
///
/// # Errors
/// [`StoreError::Io`] if the database cannot be read.
pub(crate) async fn holder(database: &Database, client: &Client) -> Result<Option<String>, StoreError> {
    let holder =
        client.query_opt(HOLDER, &[&database.schema()]).await.map_err(|error| store_error(&error))?;
    Ok(holder.map(|holder| origin(&holder).unwrap_or_default()))
}

fn origin(holder: &Row) -> Option<String> {
    let (address, since) = (holder.try_get::<_, String>(1).ok()?, holder.try_get::<_, String>(2).ok()?);
    Some(format!(" from {address}, connected since {since},"))
}
