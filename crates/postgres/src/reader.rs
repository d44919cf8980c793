//! Connections that read rows, with their prepared statements.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use longshore_store::StoreError;
use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::connect::{Database, Role};
use crate::error::{breaks_connection, store_error};
use crate::lanes::Settling;

/// A statement of the sessions that read. Each is prepared once for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Jobs,
    Webhooks,
    Input,
    Outcome,
    Attempts,
    Stream,
    Chunks,
    Counters,
    Values,
    LastEndpoint,
}

impl Read {
    const ALL: [Self; 10] = [
        Self::Jobs,
        Self::Webhooks,
        Self::Input,
        Self::Outcome,
        Self::Attempts,
        Self::Stream,
        Self::Chunks,
        Self::Counters,
        Self::Values,
        Self::LastEndpoint,
    ];

    fn sql(self) -> &'static str {
        match self {
            Self::Jobs => {
                "SELECT seq, row FROM job WHERE endpoint = $1 AND seq > $2 AND row IS NOT NULL ORDER BY seq LIMIT $3"
            }
            Self::Webhooks => "SELECT seq, attempts, due_at FROM webhook WHERE endpoint = $1 ORDER BY seq",
            Self::Input => "SELECT input FROM job WHERE endpoint = $1 AND seq = $2",
            Self::Outcome => "SELECT outcome FROM job WHERE endpoint = $1 AND seq = $2",
            Self::Attempts => "SELECT attempts FROM job WHERE endpoint = $1 AND seq = $2",
            Self::Stream => "SELECT next, consumed, posts FROM stream WHERE endpoint = $1 AND seq = $2",
            Self::Chunks => {
                "SELECT \"offset\", bytes FROM chunk WHERE endpoint = $1 AND seq = $2 AND \"offset\" >= $3 \
                 ORDER BY \"offset\" LIMIT $4"
            }
            Self::Counters => {
                "SELECT completed, failed, retried, cancelled, reserved_seq, purged_until FROM counters \
                 WHERE endpoint = $1"
            }
            Self::Values => "SELECT class, id, value FROM value ORDER BY rank",
            Self::LastEndpoint => "SELECT no FROM last_endpoint",
        }
    }
}

/// One connection with its statements, in the order of [`Read::ALL`].
pub(crate) struct ReadSession {
    pub client: Client,
    statements: Vec<Statement>,
}

/// The reader connections. Each serves many reads at a time.
pub(crate) struct Readers {
    database: Database,
    sessions: Vec<Mutex<Option<Arc<ReadSession>>>>,
    next: AtomicUsize,
    settling: Settling,
}

impl Readers {
    /// Returns `count` readers, which connect when they are needed.
    pub(crate) fn new(database: Database, count: usize, settling: Settling) -> Self {
        let sessions = (0..count).map(|_| Mutex::new(None)).collect();
        Self { database, sessions, next: AtomicUsize::new(0), settling }
    }

    /// Reads rows. A read whose connection breaks is repeated once.
    ///
    /// # Errors
    /// [`StoreError::Io`] if the database cannot be reached, or the batches of a broken connection are not settled in 5 s.
    pub(crate) async fn read(
        &self,
        read: Read,
        arguments: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        match self.try_read(read, arguments).await {
            Err(ReadError::Broken(_)) => {
                self.try_read(read, arguments).await.map_err(ReadError::into_store_error)
            }
            result => result.map_err(ReadError::into_store_error),
        }
    }

    async fn try_read(&self, read: Read, arguments: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, ReadError> {
        let session = self.session().await.map_err(ReadError::Failed)?;
        let statement = Read::ALL.iter().position(|other| *other == read);
        let statement = statement.and_then(|at| session.statements.get(at));
        let Some(statement) = statement else {
            return Err(ReadError::Failed(StoreError::Io(format!(
                "the statement for {read:?} is not prepared"
            ))));
        };
        session.client.query(statement, arguments).await.map_err(|error| {
            if breaks_connection(&error) {
                ReadError::Broken(store_error(&error))
            } else {
                ReadError::Failed(store_error(&error))
            }
        })
    }

    /// Returns a connection, after the lanes have settled what broken connections left.
    ///
    /// # Errors
    /// [`StoreError::Io`], as [`Self::read`].
    pub(crate) async fn session(&self) -> Result<Arc<ReadSession>, StoreError> {
        self.settling.wait().await.map_err(|_| {
            StoreError::Io(format!("the database {} has not answered for 5 s", self.database.address()))
        })?;
        let slot = &self.sessions[self.next.fetch_add(1, Ordering::Relaxed) % self.sessions.len()];
        let mut slot = slot.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let client = self.database.connect(Role::Reader).await?;
        let mut statements = Vec::with_capacity(Read::ALL.len());
        for read in Read::ALL {
            statements.push(client.prepare(read.sql()).await.map_err(|error| store_error(&error))?);
        }
        let session = Arc::new(ReadSession { client, statements });
        *slot = Some(Arc::clone(&session));
        Ok(session)
    }
}

enum ReadError {
    /// The connection broke, so that the read can be tried over another one.
    Broken(StoreError),
    Failed(StoreError),
}

impl ReadError {
    fn into_store_error(self) -> StoreError {
        match self {
            Self::Broken(error) | Self::Failed(error) => error,
        }
    }
}
