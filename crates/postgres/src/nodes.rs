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
mod identity;
mod join;
mod lease;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use longshore_model::{Node, Nodes};
use longshore_store::StoreError;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::Client;

use crate::connect::{Database, Role};
use crate::error::store_error;

pub use candidate::IsGone;
pub use identity::{Identity, IdentityTexts};
pub use join::NewNode;

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

const LEAVE: &str = "UPDATE node SET is_dead = true WHERE id = $1";

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
struct Shared {
    database: Database,
    id: i32,
    /// This node, as the others read it.
    me: Node,
    rights: watch::Sender<NodeRights>,
    nodes: watch::Sender<Arc<Nodes>>,
    /// Set when another node has declared this one dead.
    lost: watch::Sender<Option<StoreError>>,
}

/// This server's place among the servers of a database. Must be used inside a Tokio runtime. The node is away 3 s after this
/// value was dropped, and gone after [`Membership::leave`].
pub struct Membership {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Membership").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl Membership {
    /// The id of this node, which is another one at each start.
    pub fn id(&self) -> i32 {
        self.shared.id
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

    /// Waits until this node owns the shards. Returns what a store of the owner needs.
    pub async fn owned(&self) -> Owned {
        let mut rights = self.shared.rights.subscribe();
        let owned = rights.wait_for(|rights| rights.owned.is_some()).await.ok().and_then(|it| it.owned);
        Owned {
            database: Arc::new(self.shared.database.clone()),
            node: self.shared.id,
            epoch: owned.unwrap_or_default(),
        }
    }

    /// Waits until another node has declared this one dead: then it must stop to serve, for its rows may be out of date and its
    /// commits fail. Returns why.
    pub fn lost(&self) -> impl Future<Output = StoreError> + Send + use<> {
        let mut lost = self.shared.lost.subscribe();
        async move {
            let error = lost.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
            match error {
                Some(error) => error,
                None => std::future::pending().await,
            }
        }
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
        let client = self.shared.database.connect(Role::Lease).await?;
        client.execute(LEAVE, &[&self.shared.id]).await.map(|_| ()).map_err(|error| store_error(&error))
    }
}

impl Drop for Membership {
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
}

/// Runs a statement with a limit of time.
///
/// # Errors
/// [`StoreError::Io`] if it failed or took over 1.5 s: then the connection is of no more use.
async fn in_time<T>(
    running: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(STATEMENT_MAX, running).await {
        Ok(done) => done.map_err(|error| store_error(&error)),
        Err(_) => Err(StoreError::Io("the database did not answer within 1.5 s".to_owned())),
    }
}

/// The open connection, or a new one.
async fn connected(database: &Database, role: Role, client: Option<Client>) -> Result<Client, StoreError> {
    match client.filter(|client| !client.is_closed()) {
        Some(client) => Ok(client),
        None => tokio::time::timeout(STATEMENT_MAX * 2, database.connect(role)).await.unwrap_or_else(|_| {
            Err(StoreError::Io("the database accepted no connection within 3 s".to_owned()))
        }),
    }
}
