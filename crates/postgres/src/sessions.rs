//! What lanes, flushers and nodes need of a database. PostgreSQL has it, and the database of the simulator.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use longshore_model::{Millis, Node, Nodes, ShardId};
use longshore_store::StoreError;
use tokio::task::JoinHandle;

/// The future of a task of this crate.
pub type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts tasks: on tokio, or in a process of the simulator.
pub type Spawn<'a> = &'a (dyn Fn(BoxTask) -> JoinHandle<()> + Send + Sync);

/// Starts a task on tokio.
pub(crate) fn on_tokio(task: BoxTask) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// The place of a batch: the epoch of its owner and the number of batches before it.
#[derive(Clone, Copy, Debug)]
pub struct BatchPlace {
    /// The shard of the batch.
    pub shard: ShardId,
    /// The epoch of the shard in the database.
    pub epoch: i64,
    /// The number of batches of the shard before this one.
    pub batches_before: i64,
    /// Whether the commit waits for the disk.
    pub is_synced: bool,
}

/// What the database says of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchResult {
    /// The batch took effect.
    Written,
    /// Nothing was written: the shard has this epoch and this number of batches.
    Refused {
        /// The epoch of the shard in the database.
        epoch: i64,
        /// Its number of batches.
        batches: i64,
    },
    /// Nothing was written: the database has lost the row of the shard.
    Missing,
}

/// A statement that failed.
#[derive(Clone, Debug)]
pub struct StatementError {
    /// Why the statement failed.
    pub error: StoreError,
    /// Whether the connection is of no more use, so that it is not known whether the statement took effect.
    pub breaks_connection: bool,
}

/// The epoch and the number of batches of a shard in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardPlace {
    /// The epoch of the shard.
    pub epoch: i64,
    /// The number of its batches.
    pub batches: i64,
}

/// By how much a lane raises the epoch of a shard after a broken connection.
///
/// Claims and releases add 1. Because a raise adds another number, a lane that got no answer to its raise can tell its own raise
/// from another owner's claim.
pub const RAISED_BY: i64 = 1 << 32;

/// Shards with their places.
pub type ShardPlaces = BTreeMap<ShardId, ShardPlace>;

/// A database that lanes write to. Clones are the same database.
pub trait LaneDatabase: Clone + Send + Sync + 'static {
    /// What a batch changes, in the form in which it is sent.
    type Changes: Send + Sync + 'static;
    /// A connection of a lane.
    type Lane: LaneSession<Self::Changes>;
    /// A connection of a flusher.
    type Flusher: FlushSession;

    /// Opens a connection of a lane.
    fn open_lane(&self) -> impl Future<Output = Result<Self::Lane, StoreError>> + Send;
    /// Opens a connection of a flusher.
    fn open_flusher(&self) -> impl Future<Output = Result<Self::Flusher, StoreError>> + Send;
}

/// A connection that batches are sent over.
pub trait LaneSession<C>: Send + Sync + 'static {
    /// Whether the connection is known to be broken.
    fn is_closed(&self) -> bool;
    /// Sends a batch. The first poll of the future sends the statement, so that batches arrive in the order of their first polls.
    fn write(
        &self,
        changes: Arc<C>,
        place: BatchPlace,
    ) -> impl Future<Output = Result<BatchResult, StatementError>> + Send + 'static;
    /// Raises the epochs of those shards that have these epochs by [`RAISED_BY`], durably. Waits for a batch of another connection
    /// that is being written. Returns the places of the raised shards, and those of shards that have other epochs if the database
    /// has them at hand.
    fn raise(
        &self,
        shards: Vec<(ShardId, i64)>,
    ) -> impl Future<Output = Result<ShardPlaces, StoreError>> + Send;
}

/// A connection that waits for the disk.
pub trait FlushSession: Send + Sync + 'static {
    /// Whether the connection is known to be broken.
    fn is_closed(&self) -> bool;
    /// Waits until everything is on the disk that the database has when the call arrives. Returns the places that the shards had
    /// then.
    fn flush(&self, shards: Vec<ShardId>)
    -> impl Future<Output = Result<ShardPlaces, StatementError>> + Send;
}

/// A database that nodes share.
pub trait NodeDatabase: Send + Sync + 'static {
    /// A connection of a node.
    type Session: NodeSession;

    /// Opens a connection for the lease, or for the lock of the owner.
    fn open_session(&self, for_lock: bool) -> impl Future<Output = Result<Self::Session, StoreError>> + Send;
}

/// A connection of a node, with the statements about nodes. The lock that it takes ends with it.
pub trait NodeSession: Send + Sync + 'static {
    /// Whether the connection is known to be broken.
    fn is_closed(&self) -> bool;
    /// Renews the lease of a node, and reads the nodes. `None` if the node was declared dead.
    fn renew(&self, node: i32) -> impl Future<Output = Result<Option<Renewal>, StoreError>> + Send;
    /// Reads the owner, and tries its lock.
    fn try_lock(&self) -> impl Future<Output = Result<LockAttempt, StoreError>> + Send;
    /// Gives the lock back.
    fn unlock(&self) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Declares a node dead whose lease is over. Returns whether it did.
    fn declare_dead(&self, node: i32) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Ends the session of a dead node that still has the lock.
    fn evict(&self, session: i32) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Makes `node` the owner, and declares the owner before it dead, if that one is still the owner and no node has declared
    /// `node` dead. Returns the epoch of the cluster.
    fn take(
        &self,
        node: i32,
        from: Option<i32>,
    ) -> impl Future<Output = Result<Option<i64>, StoreError>> + Send;
    /// Takes the lock of the owner again, unless `node` was declared dead. Returns whether this session has it.
    fn lock_again(&self, node: i32) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Declares the own node dead: it stops.
    fn leave(&self, node: i32) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What a node reads when it renews its lease.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The nodes of the cluster.
    pub nodes: Nodes,
    /// The time of the database.
    pub now: Millis,
}

/// What an attempt to take the lock gave, with the owner that was read.
#[derive(Clone, Debug)]
pub struct LockAttempt {
    /// `None` before the first owner.
    pub owner: Option<SeenOwner>,
    /// The epoch of the cluster.
    pub epoch: i64,
    /// Whether this session has the lock now.
    pub has_lock: bool,
}

/// The owner, as the database has it.
#[derive(Clone, Debug)]
pub struct SeenOwner {
    /// The node that the row of the cluster names.
    pub node: Node,
    /// Whether it was declared dead.
    pub is_dead: bool,
    /// Whether its lease is over, by the clock of the database.
    pub is_over: bool,
    /// The session that has taken the lock for it.
    pub lock_session: Option<i32>,
}
