//! Moving commits from the write-ahead log into the database file, beside the writer instead of in its way.
//!
//! A checkpoint on the writer's own thread would hold up every commit for as long as the copied pages take to
//! sync. So a second connection copies in the background whenever the log has grown. Under unbroken load it never
//! reaches the end, and a log starts over only when all of it is copied: past [`LogLimits::pages_max`] the writer copies
//! the little that is left between two groups, which lets the next commit start the log over.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::doubt::Doubt;
use super::error::from_sqlite;
use super::open;
use crate::StoreError;

/// How long the write-ahead log may become.
#[derive(Clone, Copy, Debug)]
pub struct LogLimits {
    /// The background copies once the log has grown by this many pages of 4 KiB.
    pub background_pages: u32,
    /// The writer itself copies once the log is this long.
    pub pages_max: u32,
    /// The log's file is lengthened by this many pages at a time.
    pub ahead_pages: u32,
}

impl Default for LogLimits {
    /// 4 MB, 32 MB and 1 MB.
    fn default() -> Self {
        Self { background_pages: 1_000, pages_max: 8_000, ahead_pages: 250 }
    }
}

/// A thread that checkpoints when it is told to.
#[derive(Debug)]
pub(super) struct Checkpointer {
    nudge: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread.
    pub fn start(database: &Path, doubt: Arc<Doubt>) -> Result<Self, StoreError> {
        let db = open::connect_beside(database).map_err(|error| from_sqlite(&error))?;
        // One waiting nudge is enough: it covers everything that is written until it is served.
        let (nudge, nudges) = sync_channel::<()>(1);
        let run = move || {
            while nudges.recv().is_ok() {
                let _turn = doubt.may_write_pages();
                // The writer has something to set right first.
                if doubt.is_raised() {
                    continue;
                }
                if let Err(error) = passive(&db).map_err(|error| doubt.after(from_sqlite(&error))) {
                    tracing::warn!(%error, "the write-ahead log could not be checkpointed, it will be tried again");
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn(run)
            .map_err(|error| StoreError::Io(format!("cannot start a thread: {error}")))?;
        Ok(Self { nudge: Some(nudge), thread: Some(thread) })
    }

    /// Asks for a checkpoint soon.
    pub fn nudge(&self) {
        if let Some(nudge) = &self.nudge {
            // Full: one is waiting already.
            let _ = nudge.try_send(());
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.nudge = None;
        if let Some(thread) = self.thread.take() {
            // A panic in there was reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// Copies what it can, waiting for neither readers nor writers.
pub(super) fn passive(db: &Connection) -> rusqlite::Result<()> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
