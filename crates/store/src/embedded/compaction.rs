//! Giving space back: what is still needed of the oldest segment is written again at the end of the log, in small
//! steps between commits; then the segment goes.
//!
//! Most jobs are gone before their segment is the oldest, so there is seldom anything to write. What says that
//! something is gone is dropped with the oldest segment: there is nothing older for it to be about.

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

/// Looked at, or written again, between two commits; twice what the commits wrote, if that is more.
const STEP_BYTES: u64 = 256 << 10;
/// After a failure, or while somebody keeps the segments where they are.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(super) struct Compaction {
    shared: Arc<ReadShared>,
    limits: SegmentLimits,
    /// See [`names::COPY_LOCK`](super::log::names::HOLD).
    hold: File,
    /// Where it goes on.
    next: Option<Cursor>,
    not_before: Option<Instant>,
}

impl Compaction {
    /// For a log that these limits hold for.
    pub fn new(shared: Arc<ReadShared>, limits: SegmentLimits, hold: File) -> Self {
        Self { shared, limits, hold, next: None, not_before: None }
    }

    /// Whether there is too much in the log that nobody needs.
    pub fn is_due(&self, log: &Log) -> bool {
        self.not_before.is_none_or(|time| Instant::now() >= time) && self.due(log).is_some()
    }

    /// One step, if there is too much in the log that nobody needs. Whether another one should follow soon. In the quiet:
    /// what is written and not settled may be newer than what the index says is needed.
    pub fn step(&mut self, log: &mut Log, committed_bytes: u64) -> bool {
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
            tracing::warn!(%error, "space of the log could not be given back, trying again soon");
            self.pause()
        })
    }

    fn pause(&mut self) -> bool {
        self.not_before = Some(Instant::now() + AGAIN_AFTER);
        false
    }

    /// The slot of the oldest segment and what is needed of it, if there is too much that is not.
    fn due(&self, log: &Log) -> Option<(usize, u64)> {
        let index = self.shared.index();
        let (bytes, live) = index.segments.bytes();
        let slot = index.segments.slots().next().filter(|&slot| slot != log.slot())?;
        let dead = bytes.saturating_sub(live);
        let segment = index.segments.get(slot).filter(|_| dead > live.max(self.limits.dead_bytes))?;
        Some((slot, segment.live_bytes))
    }

    /// The oldest segments of which nothing is needed go.
    fn retire(&mut self, log: &mut Log) -> Result<bool, StoreError> {
        // Whoever makes a copy of the log holds a shared lock.
        if self.hold.try_lock().is_err() {
            return Ok(self.pause());
        }
        let result = self.retire_unheld(log);
        // It goes with the file at the latest.
        let _ = self.hold.unlock();
        result.map(|()| true)
    }

    fn retire_unheld(&mut self, log: &mut Log) -> Result<(), StoreError> {
        let first_needed = {
            let index = self.shared.index();
            let mut slots = index.segments.slots();
            let first = slots.find(|&slot| {
                slot == log.slot() || index.segments.get(slot).is_some_and(|segment| segment.live_bytes > 0)
            });
            first.and_then(|slot| index.segments.get(slot)).map(|segment| segment.number)
        };
        let Some(first_needed) = first_needed else { return Ok(()) };
        log.drop_before(first_needed)?;
        loop {
            let retired = self.shared.index().segments.pop_before(first_needed);
            match retired {
                Some(segment) => log.retire(segment)?,
                None => return Ok(()),
            }
        }
    }

    /// Writes some of what is needed again.
    fn copy_live(&mut self, log: &mut Log, oldest: usize, bytes: u64) -> Result<(), StoreError> {
        let Some(source) = Source::new(&self.shared, oldest) else { return Ok(()) };
        let mut next = self.next.filter(|next| next.is_in(&source)).unwrap_or_else(|| source.start());
        let mut frame = log.blank_frame();
        if let Err(error) = source.collect(&mut frame, &mut next, bytes) {
            log.unused(frame);
            return Err(error);
        }
        if frame.is_empty() {
            log.unused(frame);
            source.expect_more(next)?;
        } else {
            log.append(frame, Durability::Buffered)?;
        }
        self.next = Some(next);
        Ok(())
    }
}
