//! What to do when a sync failed.
//!
//! Linux says once, to each open descriptor, that a sync failed (before version 4.13 only to one of them). What
//! should have reached the disk counts as written from then on: programs still read it from memory, the next sync
//! succeeds, and a power cut shows that it was never there. `SQLite` does not know this. It would go on behind a
//! hole in its log, or start the log over although pages of the database file are missing.
//!
//! So after any failure nothing is committed, synced or checkpointed until all that could be missing was written
//! and synced once more: the log up to its last commit, then those pages of the database that are in the log. What
//! a failed commit left in the log is cut off, so that it cannot come back after a crash.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::StoreError;

/// The layout of a write-ahead log, see <https://www.sqlite.org/fileformat2.html#walformat>.
pub(super) const LOG_HEADER_BYTES: u64 = 32;
pub(super) const FRAME_HEADER_BYTES: u64 = 24;
const PAGE_SIZE_AT: u64 = 8;

/// Copied at once.
const PART_BYTES: u64 = 1 << 20;

/// Whether the disk may lack something that was written. Shared by all who write.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    raised: AtomicBool,
    checkpoint: Mutex<()>,
}

impl Doubt {
    /// Takes note of a failure that may have been one of a sync.
    pub fn after(&self, error: StoreError) -> StoreError {
        if let StoreError::Io(_) = error {
            self.raised.store(true, Ordering::Release);
        }
        error
    }

    /// Everything was written again.
    pub fn dispel(&self) {
        self.raised.store(false, Ordering::Release);
    }

    /// Whether nothing may be built on what is there.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// As [`Self::may_write_pages`], if nobody has it.
    pub fn try_write_pages(&self) -> Option<MutexGuard<'_, ()>> {
        self.checkpoint.try_lock().ok()
    }

    /// The right to write to the database file, which checkpoints do and [`write_again`] does.
    pub fn may_write_pages(&self) -> MutexGuard<'_, ()> {
        self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the first frames of the log and their pages of the database again, and cuts the log off behind them.
pub(super) fn write_again(log: &File, database: &File, frames: u32) -> io::Result<()> {
    // Every descriptor hears of a failure once. What these hear now is what is made up for below.
    let _ = (log.sync_all(), database.sync_all());
    if frames == 0 {
        // The log starts over: the database has everything, and was synced.
        log.set_len(0)?;
        return log.sync_all();
    }
    let mut page_bytes = [0; 4];
    log.read_exact_at(&mut page_bytes, PAGE_SIZE_AT)?;
    let page_bytes = u64::from(u32::from_be_bytes(page_bytes));
    let frame_bytes = FRAME_HEADER_BYTES + page_bytes;
    let log_bytes = LOG_HEADER_BYTES + u64::from(frames) * frame_bytes;
    if log.metadata()?.len() < log_bytes {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the write-ahead log was cut by somebody else",
        ));
    }
    log.set_len(log_bytes)?;
    rewrite(log, 0, log_bytes)?;
    // Only now may pages be touched: one that a power cut tears is then found whole in the log.
    log.sync_all()?;

    let mut pages = BTreeSet::new();
    for frame in 0..u64::from(frames) {
        let mut page = [0; 4];
        log.read_exact_at(&mut page, LOG_HEADER_BYTES + frame * frame_bytes)?;
        pages.insert(u64::from(u32::from_be_bytes(page)));
    }
    let database_bytes = database.metadata()?.len();
    for page in pages {
        let end = page * page_bytes;
        // Beyond the end: not checkpointed yet.
        if page_bytes <= end && end <= database_bytes {
            rewrite(database, end - page_bytes, end)?;
        }
    }
    database.sync_all()
}

/// Writes a whole log again.
pub(super) fn write_log_again(log: &File) -> io::Result<()> {
    rewrite(log, 0, log.metadata()?.len())?;
    log.sync_all()
}

/// Writes what is there.
fn rewrite(file: &File, mut from: u64, to: u64) -> io::Result<()> {
    let mut part = vec![0; PART_BYTES.min(to - from) as usize];
    while from < to {
        let part = &mut part[..PART_BYTES.min(to - from) as usize];
        file.read_exact_at(part, from)?;
        file.write_all_at(part, from)?;
        from += part.len() as u64;
    }
    Ok(())
}
