//! Reads: from the index at once, from files on blocking threads, a few at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::StoreError;
use crate::embedded::index::Index;

/// How many reads of files run at once; more wait. They share two or three disks' worth of work at most.
const READERS_MAX: usize = 8;

/// What those who read share with the one who writes.
#[derive(Debug, Default)]
pub(in crate::embedded) struct ReadShared {
    index: Mutex<Index>,
}

impl ReadShared {
    /// With what is there.
    pub fn new(index: Index) -> Self {
        Self { index: Mutex::new(index) }
    }

    /// What is where. Held for no longer than it takes to look.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        // Nothing in here panics half-way through a change, so what a poisoned lock guards is whole.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives turns to those who read files.
#[derive(Debug)]
pub(in crate::embedded) struct ReadPool {
    shared: Arc<ReadShared>,
    turns: Arc<Semaphore>,
}

impl ReadPool {
    /// Nobody reads yet.
    pub fn new(shared: Arc<ReadShared>) -> Self {
        Self { shared, turns: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// What is where.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        self.shared.index()
    }

    /// The same, for who looks again and again.
    pub fn shared(&self) -> Arc<ReadShared> {
        Arc::clone(&self.shared)
    }

    /// Runs a read on a blocking thread.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadShared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let stopped = |_| StoreError::Io("the store was closed".into());
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(stopped)?;
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let result = read(&shared);
            drop(turn);
            result
        });
        task.await.unwrap_or_else(|error| Err(StoreError::Io(format!("a read did not finish: {error}"))))
    }
}
