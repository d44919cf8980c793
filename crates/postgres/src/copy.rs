//! Tables that are read or written while no server uses them, for `longshore copy`.

use longshore_store::StoreError;
use tokio_postgres::Client;
use tokio_postgres::types::FromSql;

use crate::connect::{Database, Role};
use crate::error::store_error;
use crate::exclusive::Held;
use crate::store::CONNECTIONS;
use crate::{LogTable, PostgresStore, exclusive, schema, server_check};

/// Whether a server of a cluster is alive.
const HAS_NODES: &str = "SELECT EXISTS (SELECT FROM node WHERE NOT is_dead AND until > clock_timestamp())";
/// The tables of a schema, without the parts of partitioned ones.
const TABLES: &str = "SELECT relname::text FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
    WHERE nspname = $1 AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1";
/// Whether this user may replace a schema; no row if there is none.
const MAY_REPLACE: &str =
    "SELECT pg_has_role(current_user, nspowner, 'USAGE') FROM pg_namespace WHERE nspname = $1";
/// Tables that have rows without any job or setting.
const WITHOUT_DATA: [&str; 3] = ["migration", "shard", "last_endpoint"];

/// The tables of a database, which no server uses. They are not changed.
pub struct HeldTables {
    store: PostgresStore,
    lock: HeldLock,
}

/// Keeps servers away from tables until it is dropped.
pub struct HeldLock {
    _lock: Held,
}

impl HeldTables {
    /// Opens the tables, and keeps servers away from them.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if a server uses them, there are none, or another version of this program made them.
    pub async fn open(database: Database) -> Result<Self, StoreError> {
        let address = database.address();
        let found = schema::versions(&database).await?;
        if found.present == 0 {
            return Err(StoreError::Unusable(format!("the database {address} has no tables of Longshore")));
        }
        if found.present < found.known {
            return Err(StoreError::Unusable(format!(
                "the tables of the database {address} have version {}, and this program reads {}; run `longshore migrate` first",
                found.present, found.known
            )));
        }
        let client = database.connect(Role::Reader).await?;
        let lock = exclusive::lock(&database).await?;
        refuse_nodes(&database, &client).await?;
        Ok(Self { store: PostgresStore::locked_by_caller(database), lock: HeldLock { _lock: lock } })
    }

    /// The rows, and what must live as long as they are read.
    pub fn into_parts(self) -> (PostgresStore, HeldLock) {
        (self.store, self.lock)
    }
}

/// New tables, which take the place of empty ones when they are complete. Dropped before, they stay under another name, and the
/// next ones replace them.
pub struct NewTables {
    database: Database,
    aside: String,
    lock: Held,
}

impl NewTables {
    /// Makes the tables, and keeps servers away from the database.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if the database cannot keep a store's promises, a server uses it, or it has jobs or settings.
    pub async fn make(database: Database) -> Result<Self, StoreError> {
        let client = database.connect(Role::Reader).await?;
        let lock = exclusive::lock(&database).await?;
        server_check::check(&client, &lock.client, CONNECTIONS).await?;
        let name = database.schema().to_owned();
        let may_replace =
            client.query_opt(MAY_REPLACE, &[&name]).await.map_err(|error| store_error(&error))?;
        if let Some(row) = may_replace {
            if !row.try_get(0).map_err(|error| store_error(&error))? {
                return Err(StoreError::Unusable(format!(
                    "the schema {name} of the database {} belongs to another user; name that user in the address",
                    database.address()
                )));
            }
            refuse_data(&database, &client).await?;
        }
        let aside = format!("{name}_copy");
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(&aside));
        client.batch_execute(&drop).await.map_err(|error| store_error(&error))?;
        let mut making = database.clone().with_schema(&aside).connect(Role::Reader).await?;
        schema::migrate(&mut making, &aside).await?;
        Ok(Self { database, aside, lock })
    }

    /// Opens the tables. Must be dropped before [`NewTables::publish`].
    pub fn open(&self) -> PostgresStore {
        PostgresStore::locked_by_caller(self.database.clone().with_schema(&self.aside))
    }

    /// The logs of the tables.
    pub fn logs(&self) -> LogTable {
        LogTable::of(self.database.clone().with_schema(&self.aside))
    }

    /// Puts the tables in the place of the empty ones, durably.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if a server may have used the database meanwhile; [`StoreError::Io`] if the database cannot be
    /// reached.
    pub async fn publish(self) -> Result<(), StoreError> {
        let client = self.database.connect(Role::Reader).await?;
        refuse_data(&self.database, &client).await?;
        if self.lock.client.is_closed() {
            let text = "the connection to the database was broken, and a server may have used it meanwhile; copy again";
            return Err(StoreError::Unusable(text.to_owned()));
        }
        let (name, aside) = (quoted(self.database.schema()), quoted(&self.aside));
        let replace = format!(
            "BEGIN; DROP SCHEMA IF EXISTS {name} CASCADE; ALTER SCHEMA {aside} RENAME TO {name}; COMMIT"
        );
        client.batch_execute(&replace).await.map_err(|error| store_error(&error))
    }

    /// Removes the schema with the tables that were written aside.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn discard(self) -> Result<(), StoreError> {
        let client = self.database.connect(Role::Reader).await?;
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", quoted(&self.aside));
        client.batch_execute(&drop).await.map_err(|error| store_error(&error))
    }
}

async fn refuse_nodes(database: &Database, client: &Client) -> Result<(), StoreError> {
    if first::<bool>(client, HAS_NODES).await? {
        let address = database.address();
        return Err(StoreError::Unusable(format!(
            "nodes use the database {address}; stop all of them first"
        )));
    }
    Ok(())
}

/// Refuses a schema with rows that a copy would remove.
async fn refuse_data(database: &Database, client: &Client) -> Result<(), StoreError> {
    let rows = client.query(TABLES, &[&database.schema()]).await.map_err(|error| store_error(&error))?;
    for row in &rows {
        let table: String = row.try_get(0).map_err(|error| store_error(&error))?;
        if WITHOUT_DATA.contains(&table.as_str()) {
            continue;
        }
        if first::<bool>(client, &format!("SELECT EXISTS (SELECT FROM {})", quoted(&table))).await? {
            return Err(StoreError::Unusable(format!(
                "the database {} is not empty: its table {table} has rows; name an empty one, or remove the schema {}",
                database.address(),
                database.schema()
            )));
        }
    }
    Ok(())
}

async fn first<T: for<'a> FromSql<'a>>(client: &Client, query: &str) -> Result<T, StoreError> {
    let row = client.query_one(query, &[]).await;
    row.and_then(|row| row.try_get(0)).map_err(|error| store_error(&error))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
