//! Waits for the owner's end, and takes over.

use std::pin::Pin;
use std::sync::Arc;

use longshore_model::{Millis, Node, NodeState, Nodes};
use longshore_store::StoreError;
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, Row};

use super::{LEASE, PAUSE, Shared, connected, in_time};
use crate::connect::Role;
use crate::error::store_error;

/// Says of a node whether its process has ended: another process, or none, answers at its address. A process that does not
/// answer in time may live.
pub type IsGone = Arc<dyn Fn(Node) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

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

/// A node that waits to take over, and then keeps the lock.
pub(super) struct Candidate {
    shared: Arc<Shared>,
    is_gone: IsGone,
    client: Option<Client>,
    /// Since when the database has answered without a break. An owner could not renew its lease while the database was away.
    answers_since: Option<Instant>,
}

/// What an attempt to take the lock gave, with the owner that was read.
struct LockAttempt {
    /// `None` before the first owner.
    owner: Option<Owner>,
    epoch: i64,
    /// Whether this node has the lock now.
    has_lock: bool,
}

struct Owner {
    node: Node,
    is_dead: bool,
    is_over: bool,
    lock_pid: Option<i32>,
}

impl Candidate {
    pub(super) fn new(shared: Arc<Shared>, is_gone: IsGone) -> Self {
        Self { shared, is_gone, client: None, answers_since: None }
    }

    /// Waits until this node is the owner, and keeps its lock from then on.
    pub(super) async fn run(mut self) {
        loop {
            match self.round().await {
                Ok(Some(epoch)) => {
                    tracing::info!(node = self.shared.id, epoch, "this node owns the shards now");
                    self.know(&self.shared.me, epoch);
                    self.shared.rights.send_modify(|rights| {
                        (rights.owned, rights.has_lock) = (Some(epoch), true);
                    });
                    return self.keep_lock().await;
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "the owner of the shards cannot be read yet");
                    (self.client, self.answers_since) = (None, None);
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Looks once. Returns the epoch if this node is the owner now.
    async fn round(&mut self) -> Result<Option<i64>, StoreError> {
        let client = connected(&self.shared.database, Role::Lock, self.client.take()).await?;
        let answers_since = *self.answers_since.get_or_insert_with(Instant::now);
        let schema = self.shared.database.schema();
        let row = in_time(client.query_one(TRY_LOCK, &[&schema])).await?;
        let attempt = LockAttempt::of(&row).map_err(|error| store_error(&error))?;
        self.tell(&attempt);
        let taken = self.decide(&client, attempt, answers_since).await;
        self.client = Some(client);
        taken
    }

    async fn decide(
        &self,
        client: &Client,
        attempt: LockAttempt,
        answers_since: Instant,
    ) -> Result<Option<i64>, StoreError> {
        let schema = self.shared.database.schema();
        let Some(owner) = attempt.owner else {
            return if attempt.has_lock { self.take(client, None).await } else { Ok(None) };
        };
        if owner.node.id == self.shared.id {
            // An earlier attempt has succeeded, and its answer was lost.
            return Ok(attempt.has_lock.then_some(attempt.epoch));
        }
        let may_declare = owner.is_over && answers_since.elapsed() >= LEASE;
        let is_dead = owner.is_dead || (attempt.has_lock && (self.is_gone)(owner.node.clone()).await) || {
            may_declare && in_time(client.execute(DECLARE, &[&owner.node.id])).await? == 1
        };
        match (is_dead, attempt.has_lock, owner.lock_pid) {
            (true, true, _) => {
                tracing::warn!(name = %owner.node.name, address = %owner.node.address, "the owner of the shards is gone, taking over");
                self.take(client, Some(owner.node.id)).await
            }
            (true, false, Some(pid)) => {
                in_time(client.query(EVICT, &[&schema, &pid])).await?;
                Ok(None)
            }
            (false, true, _) => {
                in_time(client.query(UNLOCK, &[&schema])).await?;
                Ok(None)
            }
            // The owner is there, or its session ends with its process.
            (_, false, _) => Ok(None),
        }
    }

    /// Makes this node the owner. The lock stays with this connection.
    async fn take(&self, client: &Client, from: Option<i32>) -> Result<Option<i64>, StoreError> {
        let taken = in_time(client.query_opt(TAKE, &[&self.shared.id, &from])).await?;
        if let Some(row) = taken {
            return row.try_get(0).map(Some).map_err(|error| store_error(&error));
        }
        in_time(client.query(UNLOCK, &[&self.shared.database.schema()])).await?;
        Ok(None)
    }

    /// Makes another owner known immediately, and not with the next renewal of the lease.
    fn tell(&self, attempt: &LockAttempt) {
        if let Some(owner) = attempt.owner.as_ref().filter(|owner| !owner.is_dead) {
            self.know(&owner.node, attempt.epoch);
        }
    }

    fn know(&self, owner: &Node, epoch: i64) {
        self.shared.nodes.send_if_modified(|known| {
            let is_new = known.owner.as_ref().is_none_or(|known| known.id != owner.id);
            if is_new {
                *known = Arc::new(Nodes { all: known.all.clone(), owner: Some(owner.clone()), epoch });
            }
            is_new
        });
    }

    /// Takes the lock again whenever its connection broke. Without it, the node does not serve. Ends when another node has
    /// declared this one dead: its connection and the lock end with it.
    async fn keep_lock(mut self) {
        while self.shared.lost.borrow().is_none() {
            let is_open = self.client.as_ref().is_some_and(|client| !client.is_closed());
            if !is_open {
                self.shared.rights.send_modify(|rights| rights.has_lock = false);
                match self.lock_again().await {
                    Ok(true) => self.shared.rights.send_modify(|rights| rights.has_lock = true),
                    Ok(false) => {}
                    Err(error) => tracing::debug!(%error, "the lock of the database cannot be taken yet"),
                }
            }
            sleep(PAUSE / 2).await;
        }
    }

    async fn lock_again(&mut self) -> Result<bool, StoreError> {
        let client = connected(&self.shared.database, Role::Lock, None).await?;
        let schema = self.shared.database.schema();
        let is_locked = in_time(client.query_opt(LOCK_AGAIN, &[&schema, &self.shared.id])).await?.is_some();
        // Without the lock, the connection is of no use.
        self.client = is_locked.then_some(client);
        Ok(is_locked)
    }
}

impl LockAttempt {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let (epoch, has_lock) = (row.try_get(1)?, row.try_get(8)?);
        // The node of the owner's row is forgotten only with the cluster.
        let (Some(id), Some(name)) = (row.try_get(0)?, row.try_get(2)?) else {
            return Ok(Self { owner: None, epoch, has_lock });
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
            Owner { node, is_dead: row.try_get(5)?, is_over: row.try_get(6)?, lock_pid: row.try_get(7)? };
        Ok(Self { owner: Some(owner), epoch, has_lock })
    }
}
