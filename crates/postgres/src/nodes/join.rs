//! How a node joins.

use longshore_model::{Millis, Node, NodeState};
use longshore_store::StoreError;
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

use super::candidate::IsGone;
use super::sql::SqlSession;
use super::{LEASE, Membership, PAUSE};
use crate::connect::{Database, Role};
use crate::error::store_error;
use crate::sessions::on_tokio;

/// A node that joins.
#[derive(Clone, Debug)]
pub struct NewNode {
    /// The name that the operator gave it.
    pub name: String,
    /// Host and port at which the other nodes reach it.
    pub address: String,
    /// The version of the program.
    pub version: String,
}

/// Nodes that have been gone for a day are forgotten.
const FORGET: &str = "DELETE FROM node WHERE until < clock_timestamp() - interval '1 day' \
    AND NOT EXISTS (SELECT FROM cluster WHERE cluster.owner = node.id)";
/// A living node of the same name, started at another address.
const NAMESAKE: &str = "SELECT address FROM node \
    WHERE name = $1 AND address <> $2 AND NOT is_dead AND until > clock_timestamp() LIMIT 1";
const JOIN: &str = "INSERT INTO node (name, address, version, until) \
    VALUES ($1, $2, $3, clock_timestamp() + interval '3 s') RETURNING id";

impl Membership {
    /// Joins the cluster of a database, whose tables [`Identity::of`](super::Identity::of) has prepared. From then on the lease
    /// is renewed, and the node takes over when there is no owner. `is_gone` says of the owner, whose lock is free, whether its
    /// process has ended.
    ///
    /// # Errors
    /// [`StoreError::Unusable`] if another node has the name; [`StoreError::Io`] if the database cannot be reached.
    pub async fn join(database: Database, node: &NewNode, is_gone: IsGone) -> Result<Self, StoreError> {
        let client = database.connect(Role::Lease).await?;
        client.execute(FORGET, &[]).await.map_err(|error| store_error(&error))?;
        refuse_namesake(&client, node).await?;
        let row = client.query_one(JOIN, &[&node.name, &node.address, &node.version]).await;
        let id = row.and_then(|row| row.try_get(0)).map_err(|error| store_error(&error))?;
        let me = Node {
            id,
            name: node.name.clone(),
            address: node.address.clone(),
            version: node.version.clone(),
            joined_at: Millis(0),
            state: NodeState::Owner,
        };
        let session = SqlSession::of(client, &database);
        Ok(Self::start(database, me, session, is_gone, &on_tokio))
    }
}

/// Waits for the end of a lease of the same name: the earlier start of a node that moved.
async fn refuse_namesake(client: &Client, node: &NewNode) -> Result<(), StoreError> {
    let deadline = Instant::now() + LEASE + PAUSE;
    loop {
        let found = client.query_opt(NAMESAKE, &[&node.name, &node.address]).await;
        let Some(row) = found.map_err(|error| store_error(&error))? else { return Ok(()) };
        if Instant::now() >= deadline {
            let address: String = row.try_get(0).map_err(|error| store_error(&error))?;
            return Err(StoreError::Unusable(format!(
                "the node at {address} has the name {:?} too; give each server of the database a `node_name` of its own",
                node.name
            )));
        }
        sleep(PAUSE).await;
    }
}
