//! Reads: from the index immediately, from files on blocking threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::StoreError;
use crate::embedded::index::Index;

/// Limit of concurrent reads of files; further reads wait.
const READERS_MAX: usize = 8;

/// The index, shared by readers and the log. A settled commit is in it before its reply is sent.
#[derive(Debug, Default)]
pub(in crate::embedded) struct ReadShared {
    index: Mutex<Index>,
}

impl ReadShared {
    /// Shares the index of a log.
    pub fn new(index: Index) -> Self {
        Self { index: Mutex::new(index) }
    }

    /// Locks the index. Never hold the lock during I/O.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        // An assertion that fails in a change of the index also poisons the write-state lock, so no commit follows.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs reads of files, at most [`READERS_MAX`] concurrently.
#[derive(Debug)]
pub(in crate::embedded) struct ReadPool {
    shared: Arc<ReadShared>,
    permits: Arc<Semaphore>,
}

impl ReadPool {
    /// Creates a pool for the log with this index.
    pub fn new(shared: Arc<ReadShared>) -> Self {
        Self { shared, permits: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Locks the index, see [`ReadShared::index`].
    pub fn index(&self) -> MutexGuard<'_, Index> {
        self.shared.index()
    }

    /// Returns the shared index.
    pub fn shared(&self) -> Arc<ReadShared> {
        Arc::clone(&self.shared)
    }

    /// Runs a read on a blocking thread.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadShared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = |_| StoreError::Io("the store was closed".into());
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(stopped)?;
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let result = read(&shared);
            drop(permit);
            result
        });
        task.await
            .unwrap_or_else(|error| Err(StoreError::Io(format!("a read of the log did not finish: {error}"))))
    }
}
