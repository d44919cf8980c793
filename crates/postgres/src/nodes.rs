//! Servers that share a database: one of them owns all shards, and the others wait to take over.
//!
//! ```text
//! every node   renews its lease once a second; the clock of the database decides whether it is over
//! the owner    holds the advisory lock of the schema
//! the others   try that lock five times a second
//!                ├─ got it, and the owner's process does not answer ──► declare it dead, take over
//!                └─ the owner's lease is over                       ──► the same, without asking it
//! ```
//!
//! Nothing of this protects the rows: the epochs of the shards do. A node claims them only while the row of the cluster names it
//! as the owner, so that an owner that was declared dead can neither write nor claim again.

mod candidate;
mod clock;
mod identity;
mod join;
mod lease;
mod right;
mod sql;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use longshore_model::{Node, Nodes};
use longshore_store::StoreError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::candidate::Candidate;
use crate::connect::Database;
use crate::sessions::{NodeDatabase, NodeSession as _, Spawn};

pub use candidate::IsGone;
pub use clock::DatabaseClock;
pub use identity::{Identity, IdentityTexts};
pub use join::NewNode;
pub use right::ServingRight;
pub use sql::SqlSession;

/// How long a node is alive after it renewed its lease, by the clock of the database. `until` is set to it in SQL.
const LEASE: Duration = Duration::from_secs(3);
/// How long before the end of its lease a node stops to serve.
const MARGIN: Duration = Duration::from_millis(500);
/// How often a lease is renewed.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after a failed statement.
const PAUSE: Duration = Duration::from_millis(200);
/// A statement that takes longer counts as failed, and its connection as broken.
const STATEMENT_MAX: Duration = Duration::from_millis(1_500);

/// What this node may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct NodeRights {
    /// When its lease ends for itself; `None` if it has none.
    lease_end: Option<Instant>,
    /// Whether it holds the lock of the owner.
    has_lock: bool,
    /// The epoch under which it became the owner; `None` for a standby.
    owned: Option<i64>,
}

/// What the tasks of a membership share.
struct Shared<D> {
    database: D,
    /// This node, as the others read it.
    me: Node,
    /// The clock of the database.
    clock: DatabaseClock,
    rights: watch::Sender<NodeRights>,
    nodes: watch::Sender<Arc<Nodes>>,
    /// Set when another node has declared this one dead.
    lost: watch::Sender<Option<StoreError>>,
}

/// This server's place among the servers of a database. Must be used inside a Tokio runtime. The node is away 3 s after this
/// value was dropped, and gone after [`Membership::leave`].
pub struct Membership<D = Database> {
    shared: Arc<Shared<D>>,
    tasks: Vec<JoinHandle<()>>,
}

impl<D> fmt::Debug for Membership<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl<D: NodeDatabase> Membership<D> {
    /// Begins as `me`, which has joined over `session`: renews the lease, and takes over when there is no owner.
    pub fn start(database: D, me: Node, session: D::Session, is_gone: IsGone, spawn: Spawn<'_>) -> Self {
        let shared = Arc::new(Shared {
            database,
            me,
            clock: DatabaseClock::default(),
            rights: watch::channel(NodeRights::default()).0,
            nodes: watch::channel(Arc::new(Nodes::default())).0,
            lost: watch::channel(None).0,
        });
        let tasks = vec![
            spawn(Box::pin(lease::renew(Arc::clone(&shared), session))),
            spawn(Box::pin(Candidate::new(Arc::clone(&shared), is_gone).run())),
        ];
        Self { shared, tasks }
    }

    /// Waits until this node owns the shards. Returns the epoch under which it does.
    pub async fn owned_epoch(&self) -> i64 {
        let mut rights = self.shared.rights.subscribe();
        // The sender lives as long as this value.
        // With the first lease, the node also knows the time of the database.
        let begins = |rights: &NodeRights| rights.owned.is_some() && rights.lease_end.is_some();
        let owned = rights.wait_for(begins).await.ok();
        owned.and_then(|rights| rights.owned).unwrap_or_default()
    }

    /// Tells the other nodes that this one stops, so that one of them takes over immediately. The engine must be closed.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database does not answer; then the others wait for the end of the lease.
    pub async fn leave(&self) -> Result<(), StoreError> {
        // The connections of the tasks end with them, and with one of these the lock.
        for task in &self.tasks {
            task.abort();
        }
        self.shared.database.open_session(false).await?.leave(self.shared.me.id).await
    }
}

impl Membership {
    /// Waits until this node owns the shards. Returns what a store of the owner needs.
    pub async fn owned(&self) -> Owned {
        let epoch = self.owned_epoch().await;
        Owned {
            database: Arc::new(self.shared.database.clone()),
            node: self.id(),
            epoch,
            clock: self.clock(),
            right: self.right(),
        }
    }
}

impl<D> Membership<D> {
    /// The clock of the database.
    pub fn clock(&self) -> DatabaseClock {
        self.shared.clock.clone()
    }

    /// The right to decide about jobs, while it lasts.
    pub fn right(&self) -> ServingRight {
        ServingRight::new(self.shared.rights.subscribe())
    }

    /// The id of this node, which is another one at each start.
    pub fn id(&self) -> i32 {
        self.shared.me.id
    }

    /// The nodes as this one last read them, at most a second ago if the database answers.
    pub fn nodes(&self) -> watch::Receiver<Arc<Nodes>> {
        self.shared.nodes.subscribe()
    }

    /// Whether this node is the owner and its lease lasts: then no other node can have taken over.
    pub fn may_serve(&self) -> bool {
        self.shared.rights.borrow().may_serve()
    }

    /// How long the node's lease still lasts; zero if it is over.
    pub fn lease_left(&self) -> Duration {
        let end = self.shared.rights.borrow().lease_end;
        end.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()))
    }

    /// Waits until the node may serve. Cancel-safe.
    pub async fn until_it_may_serve(&self) {
        let mut rights = self.shared.rights.subscribe();
        // The sender lives as long as this value.
        let _ = rights.wait_for(NodeRights::may_serve).await;
    }

    /// Waits until another node has declared this one dead: then it must stop to serve, for its rows may be out of date and its
    /// commits fail. Returns why.
    pub fn lost(&self) -> impl Future<Output = StoreError> + Send + use<D> {
        let mut lost = self.shared.lost.subscribe();
        async move {
            let error = lost.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
            match error {
                Some(error) => error,
                None => std::future::pending().await,
            }
        }
    }
}

impl<D> Drop for Membership<D> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl NodeRights {
    fn may_serve(&self) -> bool {
        self.owned.is_some() && self.has_lock && self.lease_end.is_some_and(|end| Instant::now() < end)
    }
}

/// The right of a node to claim the shards, while the row of the cluster names it as the owner.
#[derive(Clone, Debug)]
pub struct Owned {
    pub(crate) database: Arc<Database>,
    pub(crate) node: i32,
    pub(crate) epoch: i64,
    clock: DatabaseClock,
    right: ServingRight,
}

impl Owned {
    /// The clock of the database, by which the owner decides.
    pub fn clock(&self) -> DatabaseClock {
        self.clock.clone()
    }

    /// The right to decide about jobs, while it lasts.
    pub fn right(&self) -> ServingRight {
        self.right.clone()
    }
}

/// Runs a statement with a limit of time.
///
/// # Errors
/// [`StoreError::Io`] if it failed or took over 1.5 s: then the connection is of no more use.
async fn in_time<T>(running: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| Err(StoreError::Io("the database did not answer within 1.5 s".to_owned()));
    tokio::time::timeout(STATEMENT_MAX, running).await.unwrap_or_else(late)
}

/// The open connection, or a new one.
async fn connected<D: NodeDatabase>(
    database: &D,
    for_lock: bool,
    session: Option<D::Session>,
) -> Result<D::Session, StoreError> {
    if let Some(session) = session.filter(|session| !session.is_closed()) {
        return Ok(session);
    }
    let late = |_| Err(StoreError::Io("the database accepted no connection within 3 s".to_owned()));
    tokio::time::timeout(STATEMENT_MAX * 2, database.open_session(for_lock)).await.unwrap_or_else(late)
}
