//! Waits for the owner's end, and takes over.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use longshore_model::{Node, Nodes};
use longshore_store::StoreError;
use tokio::time::{Instant, sleep};

use super::{LEASE, PAUSE, Shared, connected, in_time};
use crate::sessions::{LockAttempt, NodeDatabase, NodeSession as _};

/// Says of a node whether its process has ended: another process, or none, answers at its address. A process that does not
/// answer in time may live.
pub type IsGone = Arc<dyn Fn(Node) -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// If a pause takes this much longer than it should, the process stood still, and perhaps the owner with it, which may renew its lease now.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A node that waits to take over, and then keeps the lock.
pub(super) struct Candidate<D: NodeDatabase> {
    shared: Arc<Shared<D>>,
    is_gone: IsGone,
    session: Option<D::Session>,
    /// Since when the database has answered, and this process has run, without a break. An owner could not renew its lease while the database was away.
    answers_since: Option<Instant>,
}

impl<D: NodeDatabase> Candidate<D> {
    pub(super) fn new(shared: Arc<Shared<D>>, is_gone: IsGone) -> Self {
        Self { shared, is_gone, session: None, answers_since: None }
    }

    /// Waits until this node is the owner, and keeps its lock from then on.
    pub(super) async fn run(mut self) {
        loop {
            match self.round().await {
                Ok(Some(epoch)) => {
                    tracing::info!(node = self.shared.me.id, epoch, "this node owns the shards now");
                    self.know(&self.shared.me, epoch);
                    self.shared.rights.send_modify(|rights| {
                        (rights.owned, rights.has_lock) = (Some(epoch), true);
                    });
                    return self.keep_lock().await;
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "the owner of the shards cannot be read yet");
                    (self.session, self.answers_since) = (None, None);
                }
            }
            let began = Instant::now();
            sleep(PAUSE).await;
            if began.elapsed() > PAUSE + STANDSTILL {
                self.answers_since = None;
            }
        }
    }

    /// Looks once. Returns the epoch if this node is the owner now.
    async fn round(&mut self) -> Result<Option<i64>, StoreError> {
        let session = connected(&self.shared.database, true, self.session.take()).await?;
        let answers_since = *self.answers_since.get_or_insert_with(Instant::now);
        let attempt = in_time(session.try_lock()).await?;
        self.tell(&attempt);
        let taken = self.decide(&session, attempt, answers_since).await;
        self.session = Some(session);
        taken
    }

    async fn decide(
        &self,
        session: &D::Session,
        attempt: LockAttempt,
        answers_since: Instant,
    ) -> Result<Option<i64>, StoreError> {
        let Some(owner) = attempt.owner else {
            return if attempt.has_lock { self.take(session, None).await } else { Ok(None) };
        };
        if owner.node.id == self.shared.me.id {
            // An earlier attempt has succeeded, and its answer was lost.
            return Ok(attempt.has_lock.then_some(attempt.epoch));
        }
        let may_declare = owner.is_over && answers_since.elapsed() >= LEASE;
        let is_dead = owner.is_dead || (attempt.has_lock && (self.is_gone)(owner.node.clone()).await) || {
            may_declare && in_time(session.declare_dead(owner.node.id)).await?
        };
        match (is_dead, attempt.has_lock, owner.lock_session) {
            (true, true, _) => {
                tracing::warn!(name = %owner.node.name, address = %owner.node.address, "the owner of the shards is gone, taking over");
                self.take(session, Some(owner.node.id)).await
            }
            (true, false, Some(holder)) => {
                in_time(session.evict(holder)).await?;
                Ok(None)
            }
            (false, true, _) => {
                in_time(session.unlock()).await?;
                Ok(None)
            }
            // The owner is there, or its session ends with its process.
            (_, false, _) => Ok(None),
        }
    }

    /// Makes this node the owner. The lock stays with this connection.
    async fn take(&self, session: &D::Session, from: Option<i32>) -> Result<Option<i64>, StoreError> {
        let taken = in_time(session.take(self.shared.me.id, from)).await?;
        if taken.is_none() {
            in_time(session.unlock()).await?;
        }
        Ok(taken)
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
            let is_open = self.session.as_ref().is_some_and(|session| !session.is_closed());
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
        let session = connected(&self.shared.database, true, None).await?;
        let is_locked = in_time(session.lock_again(self.shared.me.id)).await?;
        // Without the lock, the connection is of no use.
        self.session = is_locked.then_some(session);
        Ok(is_locked)
    }
}
