//! The tables, and their numbered migrations.

use longshore_store::StoreError;
use tokio_postgres::Client;

use crate::error::store_error;

/// Every migration, in order. A number that was released never changes; a change is a further migration.
const MIGRATIONS: [(&str, &str); 3] = [
    ("rows", include_str!("schema/0001_rows.sql")),
    ("commit", include_str!("schema/0002_commit.sql")),
    ("nodes", include_str!("schema/0003_nodes.sql")),
];

/// The version of the schema after all migrations.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

const MIGRATION_TABLE: &str = "CREATE TABLE IF NOT EXISTS migration \
    (version int4 PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())";

/// Creates the schema if there is none, and applies the missing migrations, each in one transaction. Two programs that do it at
/// the same time wait for each other. Returns how many were applied.
///
/// # Errors
/// [`StoreError::Unusable`] if a later version of this program made the tables, or a migration fails.
pub(crate) async fn migrate(client: &mut Client, schema: &str) -> Result<i32, StoreError> {
    let failed = |step: &str, error: &tokio_postgres::Error| {
        StoreError::Unusable(format!("cannot prepare the tables ({step}): {}", store_error(error)))
    };
    let name = schema.replace('"', "\"\"");
    let transaction = client.transaction().await.map_err(|error| failed("begin", &error))?;
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('longshore migration ' || $1::text, 0))";
    transaction.execute(lock, &[&schema]).await.map_err(|error| failed("lock", &error))?;
    transaction
        .batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{name}\"; {MIGRATION_TABLE}"))
        .await
        .map_err(|error| failed("schema", &error))?;
    let row = transaction
        .query_one("SELECT coalesce(max(version), 0) FROM migration", &[])
        .await
        .map_err(|error| failed("version", &error))?;
    let present: i32 = row.try_get(0).map_err(|error| failed("version", &error))?;
    if present > VERSION {
        return Err(StoreError::Unusable(format!(
            "the tables have version {present}, and this program knows {VERSION}: start the newer program"
        )));
    }
    for (number, (name, sql)) in (1..).zip(MIGRATIONS).skip(present.unsigned_abs() as usize) {
        transaction.batch_execute(sql).await.map_err(|error| failed(name, &error))?;
        transaction
            .execute("INSERT INTO migration (version, name) VALUES ($1, $2)", &[&number, &name])
            .await
            .map_err(|error| failed(name, &error))?;
    }
    transaction.commit().await.map_err(|error| failed("commit", &error))?;
    Ok(VERSION - present)
}
