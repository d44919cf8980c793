//! Which cluster a database belongs to.

use longshore_store::StoreError;
use tokio_postgres::{Client, Row};

use crate::connect::{Database, Role};
use crate::error::store_error;
use crate::{schema, server_check};

/// The texts that prove a node's keys: sealed, if the servers seal secrets.
#[derive(Clone)]
pub struct IdentityTexts {
    /// The secret that nodes know each other by.
    pub secret: String,
    /// A text that every node must be able to decrypt.
    pub canary: String,
}

/// What a database says about its cluster. Has no `Debug`: the secret may be unsealed.
pub struct Identity {
    /// The cluster's id, made with the tables.
    pub id: String,
    /// The texts as they are stored.
    pub texts: IdentityTexts,
    /// Whether a node of the cluster is alive.
    pub has_living_nodes: bool,
}

const CREATE: &str = "INSERT INTO cluster (id, secret, canary) VALUES (gen_random_uuid()::text, $1, $2) ON CONFLICT DO NOTHING";
const READ: &str = "SELECT id, secret, canary, \
    EXISTS (SELECT FROM node WHERE NOT is_dead AND until > clock_timestamp()) FROM cluster";
const REPLACE: &str = "UPDATE cluster SET secret = $1, canary = $2 \
    WHERE NOT EXISTS (SELECT FROM node WHERE NOT is_dead AND until > clock_timestamp())";

impl Identity {
    /// Checks the database, brings its tables up to date, and reads which cluster it belongs to. A database without a cluster
    /// gets one with these texts.
    ///
    /// # Errors
    /// Those of [`PostgresStore::open`](crate::PostgresStore::open), but for those of a second server.
    pub async fn of(database: &Database, texts: &IdentityTexts) -> Result<Self, StoreError> {
        let mut client = database.connect(Role::Reader).await?;
        let other = database.connect(Role::Lease).await?;
        server_check::check(&client, &other, crate::store::CONNECTIONS).await?;
        schema::migrate(&mut client, database.schema()).await?;
        let created = client.execute(CREATE, &[&texts.secret, &texts.canary]).await;
        created.map_err(|error| store_error(&error))?;
        read(&client).await
    }

    /// Stores other texts, as after a change of the keys. Does nothing while a node is alive.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn replace(database: &Database, texts: &IdentityTexts) -> Result<(), StoreError> {
        let client = database.connect(Role::Reader).await?;
        let replaced = client.execute(REPLACE, &[&texts.secret, &texts.canary]).await;
        replaced.map(|_| ()).map_err(|error| store_error(&error))
    }
}

async fn read(client: &Client) -> Result<Identity, StoreError> {
    let row = client.query_one(READ, &[]).await.map_err(|error| store_error(&error))?;
    let identity = |row: &Row| -> Result<Identity, tokio_postgres::Error> {
        Ok(Identity {
            id: row.try_get(0)?,
            texts: IdentityTexts { secret: row.try_get(1)?, canary: row.try_get(2)? },
            has_living_nodes: row.try_get(3)?,
        })
    };
    identity(&row).map_err(|error| store_error(&error))
}
