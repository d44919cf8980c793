//! Sessions: statements go one by one to a backend of the database, and results come back.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longshore_postgres::StatementError;
use longshore_store::StoreError;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::{Database, NodeView, SLOW_MS_MAX};
use crate::cluster::partitions::Place;
use crate::faults::Fault;

/// Longest time on the way to the database or from it, in ms.
const LATENCY_MS_MAX: u64 = 2;
/// How long a connection waits for an answer, as `tcp_user_timeout` sets it.
const NETWORK_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time until a connection breaks with a statement in flight, in ms.
const BREAK_MS_MAX: u64 = 20;
/// Longest time after which a node notices that its idle connection has ended, in ms.
const NOTICE_MS_MAX: u64 = 5_000;

/// A statement with the way of its result.
type Statement = Box<dyn FnOnce(Backend) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A connection of a node to the database.
pub struct Session {
    view: NodeView,
    statements: mpsc::UnboundedSender<Statement>,
    wire: Wire,
}

/// What both ends of a session share. Cheap to clone.
#[derive(Clone)]
struct Wire {
    /// Whether the node knows that the connection is broken.
    closed: Arc<watch::Sender<bool>>,
    /// How much later statements arrive that were sent before the connection broke, in ms.
    lag_ms: Arc<AtomicU64>,
}

/// The database's end of a session.
#[derive(Clone)]
pub(super) struct Backend {
    pub(super) database: Database,
    pub(super) session: i32,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database is down, or cannot be reached within 5 s.
    pub(super) async fn open(view: &NodeView) -> Result<Self, StoreError> {
        let database = &view.database;
        let partitions = &database.shared.partitions;
        let there = async {
            sleep(database.random_ms(LATENCY_MS_MAX)).await;
            partitions.pass(view.place(), Place::Database).await;
            partitions.pass(Place::Database, view.place()).await;
        };
        let late = |_| StoreError::Io("the database accepted no connection within 5 s".to_owned());
        timeout(NETWORK_TIMEOUT, there).await.map_err(late)?;
        let (statements, waiting) = mpsc::unbounded_channel();
        let wire = Wire { closed: Arc::new(watch::channel(false).0), lag_ms: Arc::default() };
        let mut state = database.state();
        let Some(process) = state.process.clone() else {
            return Err(StoreError::Io("the database refuses connections".to_owned()));
        };
        state.last_session += 1;
        let session = state.last_session;
        let backend = Backend { database: database.clone(), session };
        let end = SessionEnd { backend: backend.clone(), wire: wire.clone() };
        let task = process.spawn(backend.run(view.place(), wire.clone(), waiting, end));
        state.sessions.insert(session, task.abort_handle());
        Ok(Self { view: view.clone(), statements, wire })
    }

    /// Whether the node knows that the connection is broken.
    pub(super) fn is_broken(&self) -> bool {
        *self.wire.closed.borrow()
    }

    /// Sends a statement with the first poll, and waits for its result. What was sent may take effect after an error.
    pub(super) fn call<T, F, S>(
        &self,
        statement: S,
    ) -> impl Future<Output = Result<T, StatementError>> + Send + 'static + use<T, F, S>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StatementError>> + Send + 'static,
        S: FnOnce(Backend) -> F + Send + 'static,
    {
        let (statements, wire, view) = (self.statements.clone(), self.wire.clone(), self.view.clone());
        async move {
            let (reply, result) = oneshot::channel();
            let statement: Statement = Box::new(move |backend| {
                Box::pin(async move {
                    // The node may have stopped waiting.
                    let _ = reply.send(statement(backend).await);
                })
            });
            if *wire.closed.borrow() || statements.send(statement).is_err() {
                wire.closed.send_replace(true);
                return Err(broken());
            }
            wire.break_sometimes(&view.database);
            let database = &view.database;
            let answered = async {
                let result = result.await;
                sleep(database.random_ms(LATENCY_MS_MAX)).await;
                database.shared.partitions.pass(Place::Database, view.place()).await;
                result
            };
            let mut closed = wire.closed.subscribe();
            let result = tokio::select! {
                biased;
                result = timeout(NETWORK_TIMEOUT, answered) => result,
                _ = closed.wait_for(|closed| *closed) => return Err(broken()),
            };
            let result = result.ok().and_then(Result::ok).unwrap_or_else(|| Err(broken()));
            if result.as_ref().is_err_and(|error| error.breaks_connection) {
                wire.closed.send_replace(true);
            }
            result
        }
    }
}

impl Wire {
    /// Breaks the connection soon, with what is in flight. It may arrive all the same, much later.
    fn break_sometimes(&self, database: &Database) {
        if !database.inject(Fault::DatabaseCut) {
            return;
        }
        if database.below(2) == 0 {
            let lag = database.random_ms(SLOW_MS_MAX).as_millis() as u64;
            self.lag_ms.store(lag, Ordering::Relaxed);
        }
        self.close_after(database, BREAK_MS_MAX);
    }

    fn close_after(&self, database: &Database, ms_max: u64) {
        let (closed, pause) = (Arc::clone(&self.closed), database.random_ms(ms_max));
        database.shared.wires.spawn(async move {
            sleep(pause).await;
            closed.send_replace(true);
        });
    }
}

impl Backend {
    async fn run(
        self,
        node: Place,
        wire: Wire,
        mut statements: mpsc::UnboundedReceiver<Statement>,
        end: SessionEnd,
    ) {
        let database = self.database.clone();
        while let Some(statement) = statements.recv().await {
            let lag = Duration::from_millis(wire.lag_ms.load(Ordering::Relaxed));
            sleep(database.random_ms(LATENCY_MS_MAX) + lag).await;
            database.shared.partitions.pass(node, Place::Database).await;
            if database.inject(Fault::DatabaseSlow) {
                sleep(database.random_ms(SLOW_MS_MAX)).await;
            }
            statement(self.clone()).await;
            if database.inject(Fault::DatabaseSessionEnded) {
                break;
            }
        }
        drop(end);
    }
}

/// Ends a session at the database when it is dropped.
struct SessionEnd {
    backend: Backend,
    wire: Wire,
}

impl Drop for SessionEnd {
    fn drop(&mut self) {
        let Backend { database, session } = &self.backend;
        self.wire.close_after(database, NOTICE_MS_MAX);
        // A crash holds the state, and has released all locks.
        if let Ok(mut state) = database.shared.state.try_lock() {
            state.sessions.remove(session);
            if state.lock == Some(*session) {
                state.lock = None;
            }
        }
    }
}

/// A connection that broke with a statement: whether it took effect is not known.
fn broken() -> StatementError {
    let error = StoreError::Io("the connection to the database broke".to_owned());
    StatementError { error, breaks_connection: true }
}
