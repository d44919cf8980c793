//! The tables, and their numbered migrations.

use longshore_store::StoreError;
use tokio_postgres::{Client, GenericClient};

use crate::connect::{Database, Role};
use crate::error::store_error;
use crate::server_check;

/// Every migration, in order. A number that was released never changes; a change is a further migration.
const MIGRATIONS: [(&str, &str); 8] = [
    ("rows", include_str!("schema/0001_rows.sql")),
    ("commit", include_str!("schema/0002_commit.sql")),
    ("nodes", include_str!("schema/0003_nodes.sql")),
    ("attempts", include_str!("schema/0004_attempts.sql")),
    ("logs", include_str!("schema/0005_logs.sql")),
    ("lines", include_str!("schema/0006_lines.sql")),
    ("posts", include_str!("schema/0007_posts.sql")),
    ("jobs", include_str!("schema/0008_jobs.sql")),
];

/// The version of the schema after all migrations.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

const MIGRATION_TABLE: &str = "CREATE TABLE IF NOT EXISTS migration \
    (version int4 PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())";

/// What a program waits for: another one that migrates the same tables, however long that takes.
const LOCK: &str = "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
    SELECT pg_advisory_xact_lock(hashtextextended('longshore migration ' || current_setting('longshore.schema'), 0)); \
    SET LOCAL lock_timeout = '10s'";

/// The version of the tables of a database, beside that of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaVersions {
    /// The version of the tables; 0 if there are none.
    pub present: i32,
    /// The version that this program makes.
    pub known: i32,
}

/// Reads the version of the tables, and changes nothing.
///
/// # Errors
/// [`StoreError::Io`] if the database cannot be reached or the user may not read the schema.
pub async fn versions(database: &Database) -> Result<SchemaVersions, StoreError> {
    let client = database.connect(Role::Reader).await?;
    Ok(SchemaVersions { present: present(&client, database.schema()).await?, known: VERSION })
}

/// Brings the tables of a database up to date, as a start does, and returns the version that they had. Servers may run.
///
/// # Errors
/// [`StoreError::Unusable`] if the database cannot keep a store's promises, a later version of this program made the tables, or
/// a migration fails; [`StoreError::Io`] if the database cannot be reached.
pub async fn migrate_database(database: &Database) -> Result<SchemaVersions, StoreError> {
    let mut client = database.connect(Role::Reader).await?;
    let other = database.connect(Role::Reader).await?;
    server_check::check(&client, &other, 0).await?;
    let applied = migrate(&mut client, database.schema()).await?;
    Ok(SchemaVersions { present: VERSION - applied, known: VERSION })
}

/// Creates the schema if there is none, and applies the missing migrations, all of them in one transaction. Two programs that do
/// it at the same time wait for each other. Tables that are up to date need no right to change them. Returns how many were
/// applied.
///
/// # Errors
/// [`StoreError::Unusable`] if a later version of this program made the tables, or a migration fails.
pub(crate) async fn migrate(client: &mut Client, schema: &str) -> Result<i32, StoreError> {
    if present(client, schema).await? == VERSION {
        return Ok(0);
    }
    let failed = |step: &str, error: &tokio_postgres::Error| {
        StoreError::Unusable(format!(
            "cannot prepare the tables ({step}): {}; `longshore migrate` can do it as a user who may",
            store_error(error)
        ))
    };
    let transaction = client.transaction().await.map_err(|error| failed("begin", &error))?;
    let name = "SELECT set_config('longshore.schema', $1, true)";
    transaction.execute(name, &[&schema]).await.map_err(|error| failed("lock", &error))?;
    transaction.batch_execute(LOCK).await.map_err(|error| failed("lock", &error))?;
    let quoted = schema.replace('"', "\"\"");
    let present = present(&transaction, schema).await?;
    if present == 0 {
        transaction
            .batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{quoted}\"; {MIGRATION_TABLE}"))
            .await
            .map_err(|error| failed("schema", &error))?;
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

/// The version of the tables; 0 if there are none.
///
/// # Errors
/// [`StoreError::Unusable`] if a later version of this program made them.
async fn present(client: &impl GenericClient, schema: &str) -> Result<i32, StoreError> {
    let failed = |error: tokio_postgres::Error| {
        StoreError::Unusable(format!("cannot read the version of the tables: {}", store_error(&error)))
    };
    let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace \
        WHERE nspname = $1 AND relname = 'migration')";
    let is_there = client.query_one(there, &[&schema]).await.and_then(|row| row.try_get(0));
    if !is_there.map_err(failed)? {
        return Ok(0);
    }
    // A user who may not use the schema is told so, and not that there is no such table.
    let version =
        format!("SELECT coalesce(max(version), 0) FROM \"{}\".migration", schema.replace('"', "\"\""));
    let row = client.query_one(&version, &[]).await;
    let present: i32 = row.and_then(|row| row.try_get(0)).map_err(failed)?;
    if present > VERSION {
        return Err(StoreError::Unusable(format!(
            "the tables have version {present}, and this program knows {VERSION}: start the newer program"
        )));
    }
    Ok(present)
}
