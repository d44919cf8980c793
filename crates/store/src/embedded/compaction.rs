//! Compaction: copies the live records of the oldest segment to the end of the log, in small steps between commits, then
//! removes the segment.
//!
//! Most jobs are deleted before their segment is the oldest, so there are few records to copy. Deletions in the oldest
//! segment are not copied: no older record exists that they could delete.

mod live_records;

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use longshore_model::Durability;

use self::live_records::{Cursor, Source};
use super::log::Log;
use super::log::limits::SegmentLimits;
use super::read::pool::ReadShared;
use crate::StoreError;

/// Bytes that one step scans or copies. A step after commits of more than half of this takes twice their bytes, so that
/// compaction keeps up with the writers.
const STEP_BYTES: u64 = 256 << 10;
/// Pause after a failed step, or while a copy of the log holds its segments.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The compaction of one log. Volatile: after a restart it begins again with the oldest segment.
#[derive(Debug)]
pub(super) struct Compaction {
    shared: Arc<ReadShared>,
    limits: SegmentLimits,
    /// The file of [`COPY_LOCK`](super::log::names::COPY_LOCK).
    copy_lock: File,
    /// The next record to look at.
    next: Option<Cursor>,
    /// The end of a pause.
    not_before: Option<Instant>,
}

impl Compaction {
    /// Starts a compaction with the log's limits and the open file of its copy lock.
    pub fn new(shared: Arc<ReadShared>, limits: SegmentLimits, copy_lock: File) -> Self {
        Self { shared, limits, copy_lock, next: None, not_before: None }
    }

    /// Whether the log has too many dead bytes and no pause is on.
    pub fn is_due(&self, log: &Log) -> bool {
        self.not_before.is_none_or(|time| Instant::now() >= time) && self.due(log).is_some()
    }

    /// Does one step if one is due. Returns whether another one should follow soon.
    ///
    /// No frame may be pending: one could replace a record that the index shows as live.
    pub fn step(&mut self, log: &mut Log, committed_bytes: u64) -> bool {
        assert!(log.is_settled(), "compaction while a sync is in flight");
        if !self.is_due(log) {
            return false;
        }
        self.not_before = None;
        let Some((oldest, live_bytes)) = self.due(log) else { return false };
        let done = match live_bytes {
            0 => self.retire(log),
            _ => self.copy_live(log, oldest, STEP_BYTES.max(committed_bytes * 2)).map(|()| true),
        };
        done.unwrap_or_else(|error| {
            tracing::warn!(%error, "log compaction failed, retrying");
            self.pause()
        })
    }

    fn pause(&mut self) -> bool {
        self.not_before = Some(Instant::now() + RETRY_AFTER);
        false
    }

    /// Returns the slot of the oldest segment and its live bytes if the log has too many dead bytes.
    fn due(&self, log: &Log) -> Option<(usize, u64)> {
        let index = self.shared.index();
        let (bytes, live) = index.segments.bytes();
        let slot = index.segments.slots().next().filter(|&slot| slot != log.slot())?;
        let dead = bytes.saturating_sub(live);
        let segment = index.segments.get(slot).filter(|_| dead > live.max(self.limits.dead_bytes))?;
        Some((slot, segment.live_bytes))
    }

    /// Removes the oldest segments that have no live record, unless a copy of the log is made.
    fn retire(&mut self, log: &mut Log) -> Result<bool, StoreError> {
        // A process that copies the log holds a shared lock.
        if self.copy_lock.try_lock().is_err() {
            return Ok(self.pause());
        }
        let result = self.retire_unheld(log);
        // The lock is released with the file at the latest.
        let _ = self.copy_lock.unlock();
        result.map(|()| true)
    }

    fn retire_unheld(&mut self, log: &mut Log) -> Result<(), StoreError> {
        let first_live = {
            let index = self.shared.index();
            let mut slots = index.segments.slots();
            let first = slots.find(|&slot| {
                slot == log.slot() || index.segments.get(slot).is_some_and(|segment| segment.live_bytes > 0)
            });
            first.and_then(|slot| index.segments.get(slot)).map(|segment| segment.number)
        };
        let Some(first_live) = first_live else { return Ok(()) };
        log.drop_before(first_live)?;
        loop {
            let retired = self.shared.index().segments.pop_before(first_live);
            match retired {
                Some(segment) => log.retire(segment)?,
                None => return Ok(()),
            }
        }
    }

    /// Copies live records of the oldest segment to the end of the log.
    fn copy_live(&mut self, log: &mut Log, oldest: usize, bytes: u64) -> Result<(), StoreError> {
        let Some(source) = Source::new(&self.shared, oldest) else { return Ok(()) };
        let mut next = self.next.filter(|next| next.is_in(&source)).unwrap_or_else(|| source.start());
        let mut frame = log.blank_frame();
        if let Err(error) = source.collect(&mut frame, &mut next, bytes) {
            log.recycle(frame);
            return Err(error);
        }
        if frame.is_empty() {
            log.recycle(frame);
            source.expect_more(next)?;
        } else {
            let live_before = self.shared.index().segments.bytes().1;
            log.append(frame, Durability::Buffered)?;
            assert_eq!(live_before, self.shared.index().segments.bytes().1, "a copy changes no live byte");
        }
        self.next = Some(next);
        Ok(())
    }
}
