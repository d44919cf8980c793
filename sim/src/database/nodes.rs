//! The statements about nodes.

use longshore_model::{Millis, Node, NodeState, Nodes};
use longshore_postgres::{LockAttempt, NodeDatabase, NodeSession, Renewal, SeenOwner, StatementError};
use longshore_store::StoreError;

use super::backend::{Backend, Session};
use super::tables::{NodeRow, TableChange};
use super::{NodeView, not_done};

/// How long a node is alive after it renewed its lease, in ms.
const LEASE_MS: u64 = 3_000;

impl NodeView {
    /// Adds a node. Returns it with the session of its lease.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached.
    pub async fn join(&self, address: String) -> Result<(Node, Session), StoreError> {
        let session = Session::open(self).await?;
        let joined = session.call(move |backend| async move {
            let id = {
                let mut state = backend.database.state();
                state.last_node += 1;
                state.last_node
            };
            let until_ms = backend.database.now_ms() + LEASE_MS;
            backend.put(id, NodeRow { address: address.clone(), until_ms, ..NodeRow::default() })?;
            backend.database.flush().await;
            Ok(node(id, &NodeRow { address, ..NodeRow::default() }, NodeState::Owner))
        });
        let joined = joined.await.map_err(|failed| failed.error)?;
        Ok((joined, session))
    }
}

impl NodeDatabase for NodeView {
    type Session = Session;

    async fn open_session(&self, _for_lock: bool) -> Result<Session, StoreError> {
        Session::open(self).await
    }
}

impl NodeSession for Session {
    fn is_closed(&self) -> bool {
        self.is_broken()
    }

    async fn renew(&self, node: i32) -> Result<Option<Renewal>, StoreError> {
        let renewed = self.call(move |backend| async move {
            let Some(row) = backend.row(node).filter(|row| !row.is_dead) else { return Ok(None) };
            let until_ms = backend.database.now_ms() + LEASE_MS;
            backend.put(node, NodeRow { until_ms, ..row })?;
            backend.database.flush().await;
            let now = Millis(backend.database.shared.world.clock.now().wall_ms);
            Ok(Some(Renewal { nodes: backend.nodes(), now }))
        });
        renewed.await.map_err(|failed| failed.error)
    }

    async fn try_lock(&self) -> Result<LockAttempt, StoreError> {
        let tried = self.call(move |backend| async move {
            let has_lock = backend.lock();
            let (owner, epoch) = {
                let state = backend.database.state();
                (state.done.owner, state.done.owners)
            };
            let owner = owner.and_then(|id| Some((id, backend.row(id)?))).map(|(id, row)| SeenOwner {
                node: node(id, &row, NodeState::Owner),
                is_dead: row.is_dead,
                is_over: row.until_ms < backend.database.now_ms(),
                lock_session: row.lock_session,
            });
            Ok(LockAttempt { owner, epoch, has_lock })
        });
        tried.await.map_err(|failed| failed.error)
    }

    async fn unlock(&self) -> Result<(), StoreError> {
        let unlocked = self.call(move |backend| async move {
            let mut state = backend.database.state();
            if state.lock == Some(backend.session) {
                state.lock = None;
            }
            Ok(())
        });
        unlocked.await.map_err(|failed| failed.error)
    }

    async fn declare_dead(&self, node: i32) -> Result<bool, StoreError> {
        let declared = self.call(move |backend| async move {
            let over = |row: &NodeRow| row.until_ms < backend.database.now_ms();
            let Some(row) = backend.row(node).filter(over) else { return Ok(false) };
            backend.put(node, NodeRow { is_dead: true, ..row })?;
            backend.database.flush().await;
            Ok(true)
        });
        declared.await.map_err(|failed| failed.error)
    }

    async fn evict(&self, session: i32) -> Result<(), StoreError> {
        let evicted = self.call(move |backend| async move {
            let holder = {
                let state = backend.database.state();
                state.sessions.get(&session).filter(|_| state.lock == Some(session)).cloned()
            };
            // The session ends, and the lock with it.
            holder.inspect(tokio::task::AbortHandle::abort);
            Ok(())
        });
        evicted.await.map_err(|failed| failed.error)
    }

    async fn take(&self, node: i32, from: Option<i32>) -> Result<Option<i64>, StoreError> {
        let taken = self.call(move |backend| async move {
            if let Some((id, row)) = from.and_then(|id| Some((id, backend.row(id)?))) {
                backend.put(id, NodeRow { is_dead: true, ..row })?;
            }
            let Some(me) = backend.row(node) else { return Ok(None) };
            let may_take = !me.is_dead && backend.database.state().done.owner == from;
            backend.put(node, NodeRow { lock_session: Some(backend.session), ..me })?;
            let owners = backend.database.state().done.owners + 1;
            if may_take {
                backend.database.change(TableChange::Owner(node, owners)).map_err(not_done)?;
            }
            backend.database.flush().await;
            Ok(may_take.then_some(owners))
        });
        taken.await.map_err(|failed| failed.error)
    }

    async fn lock_again(&self, node: i32) -> Result<bool, StoreError> {
        let locked = self.call(move |backend| async move {
            let Some(row) = backend.row(node).filter(|row| !row.is_dead) else { return Ok(false) };
            let is_locked = backend.lock();
            if is_locked {
                backend.put(node, NodeRow { lock_session: Some(backend.session), ..row })?;
                backend.database.flush().await;
            }
            Ok(is_locked)
        });
        locked.await.map_err(|failed| failed.error)
    }

    async fn leave(&self, node: i32) -> Result<(), StoreError> {
        let left = self.call(move |backend| async move {
            let Some(row) = backend.row(node) else { return Ok(()) };
            backend.put(node, NodeRow { is_dead: true, ..row })?;
            backend.database.flush().await;
            Ok(())
        });
        left.await.map_err(|failed| failed.error)
    }
}

impl Backend {
    fn row(&self, node: i32) -> Option<NodeRow> {
        self.database.state().done.nodes.get(&node).cloned()
    }

    fn put(&self, node: i32, row: NodeRow) -> Result<(), StatementError> {
        self.database.change(TableChange::Node(node, row)).map_err(not_done)
    }

    /// Tries the lock of the owner. Returns whether this session has it.
    fn lock(&self) -> bool {
        let mut state = self.database.state();
        *state.lock.get_or_insert(self.session) == self.session
    }

    fn nodes(&self) -> Nodes {
        let now_ms = self.database.now_ms();
        let state = self.database.state();
        let all = state.done.nodes.iter().map(|(id, row)| {
            let kind = match (row.is_dead, row.until_ms > now_ms) {
                (true, _) => NodeState::Gone,
                (false, false) => NodeState::Away,
                (false, true) if state.done.owner == Some(*id) => NodeState::Owner,
                (false, true) => NodeState::Standby,
            };
            node(*id, row, kind)
        });
        let all: Vec<Node> = all.collect();
        let owner = all.iter().find(|node| Some(node.id) == state.done.owner).cloned();
        Nodes { all, owner, epoch: state.done.owners }
    }
}

fn node(id: i32, row: &NodeRow, state: NodeState) -> Node {
    let name = row.address.clone();
    Node { id, name, address: row.address.clone(), version: String::new(), joined_at: Millis(0), state }
}
