//! The statements about nodes, in PostgreSQL.

use longshore_model::{Millis, Node, NodeState, Nodes};
use longshore_store::StoreError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::connect::{Database, Role};
use crate::error::store_error;
use crate::sessions::{LockAttempt, NodeDatabase, NodeSession, Renewal, SeenOwner};

const RENEW: &str =
    "UPDATE node SET until = clock_timestamp() + interval '3 s' WHERE id = $1 AND NOT is_dead RETURNING id";
const NODES: &str = "SELECT node.id, name, address, version, (extract(epoch FROM joined_at) * 1000)::int8, is_dead, \
    until > clock_timestamp(), cluster.owner IS NOT DISTINCT FROM node.id, cluster.epoch, \
    (extract(epoch FROM clock_timestamp()) * 1000)::int8 FROM cluster, node ORDER BY node.id";
/// Reads the owner, and tries its lock. The one row of the cluster, so the lock is tried once.
const TRY_LOCK: &str = "SELECT cluster.owner, cluster.epoch, node.name, node.address, node.version, node.is_dead, \
    node.until < clock_timestamp(), node.lock_pid, \
    pg_try_advisory_lock(hashtextextended('longshore ' || $1::text, 0)) \
    FROM cluster LEFT JOIN node ON node.id = cluster.owner";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended('longshore ' || $1::text, 0))";
/// Declares a node dead whose lease is over.
const DECLARE: &str = "UPDATE node SET is_dead = true WHERE id = $1 AND until < clock_timestamp()";
/// Ends the session of a dead node that still has the lock: its computer is away, or its process stands still.
const EVICT: &str = "SELECT pg_terminate_backend(lock.pid) FROM pg_locks lock \
    JOIN pg_database ON pg_database.oid = lock.database \
    WHERE lock.locktype = 'advisory' AND lock.granted AND lock.objsubid = 1 AND lock.pid = $2 \
        AND pg_database.datname = current_database() \
        AND (lock.classid::int8 << 32 | lock.objid::int8) = hashtextextended('longshore ' || $1::text, 0)";
/// Makes this node the owner, if the owner is still the one that was read and no node has declared this one dead.
const TAKE: &str = "WITH died AS (UPDATE node SET is_dead = true WHERE id = $2), \
    locked AS (UPDATE node SET lock_pid = pg_backend_pid() WHERE id = $1) \
    UPDATE cluster SET owner = $1, epoch = epoch + 1 WHERE owner IS NOT DISTINCT FROM $2 \
        AND EXISTS (SELECT FROM node WHERE id = $1 AND NOT is_dead) RETURNING epoch";
/// Takes the lock again, over a new connection. Not once another node has declared this one dead: that node needs the lock.
const LOCK_AGAIN: &str = "UPDATE node SET lock_pid = pg_backend_pid() \
    WHERE id = $2 AND NOT is_dead AND pg_try_advisory_lock(hashtextextended('longshore ' || $1::text, 0)) RETURNING id";

/// A node that stops declares itself dead.
const LEAVE: &str = "UPDATE node SET is_dead = true WHERE id = $1";

/// A connection of a node.
pub struct SqlSession {
    client: Client,
    schema: String,
}

impl SqlSession {
    pub(super) fn of(client: Client, database: &Database) -> Self {
        Self { client, schema: database.schema().to_owned() }
    }

    async fn row(&self, sql: &str, arguments: &[&(dyn ToSql + Sync)]) -> Result<Option<Row>, StoreError> {
        self.client.query_opt(sql, arguments).await.map_err(|error| store_error(&error))
    }

    async fn execute(&self, sql: &str, arguments: &[&(dyn ToSql + Sync)]) -> Result<u64, StoreError> {
        self.client.execute(sql, arguments).await.map_err(|error| store_error(&error))
    }
}

impl NodeDatabase for Database {
    type Session = SqlSession;

    async fn open_session(&self, for_lock: bool) -> Result<SqlSession, StoreError> {
        let client = self.connect(if for_lock { Role::Lock } else { Role::Lease }).await?;
        Ok(SqlSession::of(client, self))
    }
}

impl NodeSession for SqlSession {
    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn renew(&self, node: i32) -> Result<Option<Renewal>, StoreError> {
        if self.row(RENEW, &[&node]).await?.is_none() {
            return Ok(None);
        }
        let rows = self.client.query(NODES, &[]).await;
        rows.and_then(|rows| renewal(&rows)).map(Some).map_err(|error| store_error(&error))
    }

    async fn try_lock(&self) -> Result<LockAttempt, StoreError> {
        let row = self.client.query_one(TRY_LOCK, &[&self.schema]).await;
        row.and_then(|row| attempt(&row)).map_err(|error| store_error(&error))
    }

    async fn unlock(&self) -> Result<(), StoreError> {
        self.row(UNLOCK, &[&self.schema]).await.map(drop)
    }

    async fn declare_dead(&self, node: i32) -> Result<bool, StoreError> {
        self.execute(DECLARE, &[&node]).await.map(|count| count == 1)
    }

    async fn evict(&self, session: i32) -> Result<(), StoreError> {
        self.client
            .query(EVICT, &[&self.schema, &session])
            .await
            .map(drop)
            .map_err(|error| store_error(&error))
    }

    async fn take(&self, node: i32, from: Option<i32>) -> Result<Option<i64>, StoreError> {
        let Some(row) = self.row(TAKE, &[&node, &from]).await? else { return Ok(None) };
        row.try_get(0).map(Some).map_err(|error| store_error(&error))
    }

    async fn lock_again(&self, node: i32) -> Result<bool, StoreError> {
        self.row(LOCK_AGAIN, &[&self.schema, &node]).await.map(|row| row.is_some())
    }

    async fn leave(&self, node: i32) -> Result<(), StoreError> {
        self.execute(LEAVE, &[&node]).await.map(drop)
    }
}

fn renewal(rows: &[Row]) -> Result<Renewal, tokio_postgres::Error> {
    let (mut nodes, mut now) = (Nodes::default(), Millis(0));
    for row in rows {
        let (is_dead, is_current, is_owner) =
            (row.try_get::<_, bool>(5)?, row.try_get::<_, bool>(6)?, row.try_get::<_, bool>(7)?);
        let state = match (is_dead, is_current) {
            (true, _) => NodeState::Gone,
            (false, false) => NodeState::Away,
            (false, true) if is_owner => NodeState::Owner,
            (false, true) => NodeState::Standby,
        };
        let node = Node {
            id: row.try_get(0)?,
            name: row.try_get(1)?,
            address: row.try_get(2)?,
            version: row.try_get(3)?,
            joined_at: Millis(row.try_get::<_, i64>(4)?.cast_unsigned()),
            state,
        };
        nodes.epoch = row.try_get(8)?;
        now = Millis(row.try_get::<_, i64>(9)?.cast_unsigned());
        if is_owner {
            nodes.owner = Some(node.clone());
        }
        nodes.all.push(node);
    }
    Ok(Renewal { nodes, now })
}

fn attempt(row: &Row) -> Result<LockAttempt, tokio_postgres::Error> {
    let (epoch, has_lock) = (row.try_get(1)?, row.try_get(8)?);
    // The node of the owner's row is forgotten only with the cluster.
    let (Some(id), Some(name)) = (row.try_get(0)?, row.try_get(2)?) else {
        return Ok(LockAttempt { owner: None, epoch, has_lock });
    };
    let node = Node {
        id,
        name,
        address: row.try_get(3)?,
        version: row.try_get(4)?,
        joined_at: Millis(0),
        state: NodeState::Owner,
    };
    let owner =
        SeenOwner { node, is_dead: row.try_get(5)?, is_over: row.try_get(6)?, lock_session: row.try_get(7)? };
    Ok(LockAttempt { owner: Some(owner), epoch, has_lock })
}
