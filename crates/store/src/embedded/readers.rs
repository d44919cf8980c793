//! Reads: a few connections that take turns on blocking threads.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::error::from_sqlite;
use crate::StoreError;

/// How many reads run at once; more wait. They share two or three disks' worth of work at most.
const READERS_MAX: usize = 8;

/// The connections, opened when first needed.
#[derive(Debug)]
pub(super) struct Readers {
    shared: Arc<Shared>,
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct Shared {
    file: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// No connection is opened yet.
    pub fn new(file: PathBuf) -> Self {
        let shared = Arc::new(Shared { file, idle: Mutex::default() });
        Self { shared, turns: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Runs a query on a blocking thread.
    pub async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = |_| StoreError::Io("the store was closed".into());
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(stopped)?;
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let result = shared.read(query);
            drop(turn);
            result
        });
        task.await.unwrap_or_else(|error| Err(StoreError::Io(format!("a read did not finish: {error}"))))
    }
}

impl Shared {
    fn read<T>(&self, query: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open(&self.file).map_err(|error| from_sqlite(&error))?,
        };
        let result = query(&connection);
        // A connection that met an error is not trusted again.
        if result.is_ok() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
        result
    }
}

fn open(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(super::open::BUSY_TIMEOUT)?;
    Ok(connection)
}
