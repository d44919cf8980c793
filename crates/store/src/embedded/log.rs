//! The log on the write path: frames are written in order, synced concurrently and settled in order.
//!
//! A frame is written under the write-state lock. The thread with a [`SyncTicket`] then syncs it without the lock, while
//! other threads write and sync later frames. A successful sync covers every frame that was written before the sync
//! began.
//!
//! Linux reports a failed sync once. The lost pages count as written from then on: reads return them from memory and the
//! next sync succeeds, but a power cut shows that they never reached the disk. So after a failed sync every frame in
//! flight fails. The log continues in a new segment. Its header says that the old segment ends before the failed frame,
//! and it repeats the acknowledged frames that were not synced (buffered commits, kept in memory). Nothing is
//! committed until the new segment is durable; from then on no failed frame can return after a crash.

pub(in crate::embedded) mod active_segment;
pub(in crate::embedded) mod attempt_row;
pub(in crate::embedded) mod coding;
pub(in crate::embedded) mod end_file;
pub(in crate::embedded) mod format;
pub(in crate::embedded) mod frame;
pub(in crate::embedded) mod hash;
pub(in crate::embedded) mod job_fields;
pub(in crate::embedded) mod job_row;
pub(in crate::embedded) mod limits;
pub(in crate::embedded) mod names;
mod new_segment;
pub(in crate::embedded) mod payload;
pub(in crate::embedded) mod record;
pub(in crate::embedded) mod segment;
pub(in crate::embedded) mod spares;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_model::Durability;

use self::active_segment::{ActiveSegment, SYNCS_MAX};
use self::end_file::EndFile;
use self::format::SEGMENT_HEADER_BYTES;
use self::frame::Frame;
use self::limits::SegmentLimits;
pub(super) use self::new_segment::LogEnd;
use self::new_segment::make_active_segment;
use self::segment::SegmentHeader;
use self::spares::Spares;
use super::error::{corrupt, from_io, is_full};
use super::index::{SLOTS_MAX, Segment};
use super::read::pool::ReadShared;
use super::recovery::Recovered;
use super::write::encode;
use crate::StoreError;

/// Limit of the bytes of acknowledged frames that are not synced: above it a sync is due immediately. These frames are
/// kept in memory.
const UNSYNCED_BYTES_MAX: usize = 8 << 20;

/// The log of an open data directory. Guarded by the write-state lock.
///
/// While no sync is in flight, no frame is pending.
#[derive(Debug)]
pub(super) struct Log {
    dir: PathBuf,
    limits: SegmentLimits,
    shared: Arc<ReadShared>,
    spares: Spares,
    /// The number of the first segment of the log.
    oldest: u64,
    active: ActiveSegment,
    /// The slot of the active segment in the index.
    slot: usize,
    end_file: EndFile,
    /// Frames that are written and not settled, in the order of writing.
    pending: VecDeque<PendingFrame>,
    /// The number of frames that were settled: the sequence number of the first pending frame.
    first_pending: u64,
    /// The number of syncs in flight.
    tickets: usize,
    /// Frames that are acknowledged and not synced, in the order of writing.
    unsynced: Vec<UnsyncedFrame>,
    /// The failed write or sync after which nothing may be written until a new segment is durable.
    sync_error: Option<StoreError>,
    /// Empty frames whose memory is reused.
    free_frames: Vec<Frame>,
}

/// A frame that is written; whether it is durable is not known.
#[derive(Debug)]
struct PendingFrame {
    frame: Frame,
    at: u32,
    records_at: u32,
    end: u32,
    durability: Durability,
}

#[derive(Debug)]
struct UnsyncedFrame {
    frame: Frame,
    end: u32,
}

/// Permission to sync the active segment without the write-state lock. Must be passed to [`Log::settle`] with the result.
#[derive(Debug)]
#[must_use]
pub(super) struct SyncTicket {
    file: Arc<File>,
    /// The sequence number of the last frame that was written before.
    last: u64,
}

impl SyncTicket {
    /// Syncs the active segment's file.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The results of settled frames, in the order of writing.
pub(super) type SyncResults = Vec<Result<(), StoreError>>;

impl Log {
    /// Continues a recovered log in a new segment. The old newest segment is not written to: torn frames may follow its
    /// end and must stay invalid.
    pub fn open(dir: &Path, limits: SegmentLimits, recovered: Recovered) -> Result<Self, StoreError> {
        let Recovered { index, end, mut frames, oldest } = recovered;
        let shared = Arc::new(ReadShared::new(index));
        let mut spares = Spares::new(dir);
        let made = make_active_segment(&mut spares, dir, limits, end, oldest, frames.iter_mut());
        let (active, places) = made.map_err(|failed| from_io(&failed.error))?;
        let end_file = EndFile::write(dir, durable_end(&active)).map_err(|error| from_io(&error))?;
        let slot = push(&shared, &active)?;
        for (frame, records_at) in frames.iter().zip(places) {
            let applied = shared.index().apply(slot, records_at, frame.records());
            applied.map_err(|(at, malformed)| corrupt(active.header.number, at, malformed))?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            limits,
            shared,
            spares,
            oldest,
            active,
            slot,
            end_file,
            pending: VecDeque::new(),
            first_pending: 0,
            tickets: 0,
            unsynced: Vec::new(),
            sync_error: None,
            free_frames: Vec::new(),
        })
    }

    /// Returns the index that the readers share with the log.
    pub fn shared(&self) -> &Arc<ReadShared> {
        &self.shared
    }

    /// Returns the slot of the active segment.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// Returns the number of frames that are written and not settled.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns an empty frame.
    pub fn blank_frame(&mut self) -> Frame {
        self.free_frames.pop().unwrap_or_default()
    }

    /// Keeps the memory of a frame for [`Self::blank_frame`].
    pub fn recycle(&mut self, mut frame: Frame) {
        frame.clear();
        if self.free_frames.len() <= SYNCS_MAX {
            self.free_frames.push(frame);
        }
    }

    /// Whether an acknowledged frame is not synced.
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Whether the unsynced frames exceed [`UNSYNCED_BYTES_MAX`], so that a sync is due immediately.
    pub fn is_overdue(&self) -> bool {
        self.unsynced.iter().map(|unsynced| unsynced.frame.bytes()).sum::<usize>() > UNSYNCED_BYTES_MAX
    }

    /// Whether no sync is in flight, so that every written frame is settled. While one is, only [`Self::write`],
    /// [`Self::ticket`], [`Self::settle`] and [`Self::settle_buffered`] may change the log.
    pub fn is_settled(&self) -> bool {
        self.tickets == 0
    }

    /// Whether a frame of `bytes` bytes can be written to the active segment. If not, [`Self::make_ready`] must run
    /// first.
    pub fn is_ready(&self, bytes: usize) -> bool {
        self.sync_error.is_none() && self.has_room(bytes)
    }

    /// Writes a frame. After an error the frame is not part of the log, also after a crash.
    pub fn write(&mut self, mut frame: Frame, durability: Durability) -> Result<(), StoreError> {
        assert!(!frame.is_empty(), "an empty frame ends the log for a reader");
        assert!(self.sync_error.is_none(), "nothing is written behind a failed write or sync");
        let at = self.active.end;
        match self.active.write(&mut frame) {
            Ok(records_at) => {
                let end = self.active.end;
                self.pending.push_back(PendingFrame { frame, at, records_at, end, durability });
                Ok(())
            }
            Err(error) => {
                self.active.overwrite_torn(at);
                self.recycle(frame);
                // A full disk rejects this frame and keeps the earlier ones.
                if !is_full(&error) {
                    self.sync_error = Some(from_io(&error));
                    let failed = self.rewrite_if_settled();
                    assert!(failed.is_empty(), "a pending frame without a sync in flight");
                }
                Err(from_io(&error))
            }
        }
    }

    /// Returns a ticket for a sync of the written frames; `None` if the last written frame needs no sync. Each of the
    /// [`SYNCS_MAX`] threads may have one ticket.
    pub fn ticket(&mut self, thread: usize) -> Option<SyncTicket> {
        self.pending.back().filter(|last| last.durability == Durability::Synced)?;
        self.tickets += 1;
        assert!(self.tickets <= SYNCS_MAX, "one sync per writer thread");
        let file = Arc::clone(&self.active.for_syncs[thread % SYNCS_MAX]);
        Some(SyncTicket { file, last: self.first_pending + self.pending.len() as u64 - 1 })
    }

    /// Settles the frames that a sync covers. After a failure the result is empty until the last sync in flight has
    /// ended; then every pending frame fails.
    pub fn settle(&mut self, ticket: SyncTicket, synced: io::Result<()>) -> SyncResults {
        let last = ticket.last;
        drop(ticket);
        assert!(self.tickets > 0, "a ticket is settled once");
        self.tickets -= 1;
        match synced {
            Ok(()) if self.sync_error.is_none() => {
                let covered = (last + 1).saturating_sub(self.first_pending);
                let mut settled: SyncResults = (0..covered).filter_map(|_| self.keep_first(true)).collect();
                settled.append(&mut self.settle_buffered());
                assert!(
                    self.tickets > 0 || self.pending.is_empty(),
                    "a sync in flight for each pending frame"
                );
                settled
            }
            Ok(()) => self.rewrite_if_settled(),
            Err(error) => {
                tracing::warn!(%error, "log sync failed, starting a new segment");
                self.sync_error.get_or_insert_with(|| from_io(&error));
                self.rewrite_if_settled()
            }
        }
    }

    /// Settles the buffered frames at the front of the pending ones: they need no sync.
    pub fn settle_buffered(&mut self) -> SyncResults {
        let mut settled = Vec::new();
        while self.pending.front().is_some_and(|first| first.durability == Durability::Buffered) {
            settled.extend(self.keep_first(false));
        }
        settled
    }

    /// Writes a frame and waits until it is settled. No sync may be in flight, as for the public methods that follow.
    pub fn append(&mut self, frame: Frame, durability: Durability) -> Result<(), StoreError> {
        assert!(self.tickets == 0 && self.pending.is_empty(), "appended while a sync is in flight");
        self.make_ready(frame.bytes())?;
        self.write(frame, durability)?;
        let mut settled = match self.ticket(0) {
            Some(ticket) => {
                let synced = ticket.sync();
                self.settle(ticket, synced)
            }
            None => self.settle_buffered(),
        };
        settled.pop().unwrap_or_else(|| Err(unsettled()))
    }

    /// Makes every acknowledged frame durable.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.sync_error.is_some() {
            return self.begin_again();
        }
        if self.is_unsynced() {
            if let Err(error) = self.active.sync() {
                tracing::warn!(%error, "log sync failed, starting a new segment");
                self.sync_error = Some(from_io(&error));
                return self.begin_again();
            }
            self.unsynced.clear();
        }
        Ok(())
    }

    /// Writes the durable end of the log to `log-end`, without a sync.
    pub fn note_end(&mut self) {
        self.end_file.note(durable_end(&self.active));
    }

    /// Makes every acknowledged frame durable, and then the note of the end in `log-end`. A log that ends earlier is
    /// damaged from then on.
    pub fn seal(&mut self) -> Result<(), StoreError> {
        self.sync()?;
        self.end_file.replace(durable_end(&self.active)).map_err(|error| from_io(&error))
    }

    /// Prepares the log for a frame of `bytes` bytes. Starts a new segment after a failure, or if the active one has no
    /// space.
    pub fn make_ready(&mut self, bytes: usize) -> Result<(), StoreError> {
        if self.sync_error.is_some() {
            self.begin_again()?;
        }
        if !self.has_room(bytes) {
            self.sync()?;
        }
        if !self.has_room(bytes) {
            self.replace_active(self.active.end)?;
        }
        Ok(())
    }

    /// Makes `segment` the first one of the log, durably. The earlier segments can then be removed.
    pub fn drop_before(&mut self, segment: u64) -> Result<(), StoreError> {
        assert!(
            (self.oldest..=self.active.header.number).contains(&segment),
            "the log starts at segment {}, its active one is {}, and it shall start at {segment}",
            self.oldest,
            self.active.header.number
        );
        let mut frame = self.blank_frame();
        encode::log_start(&mut frame, segment);
        self.append(frame, Durability::Synced)?;
        self.oldest = segment;
        Ok(())
    }

    /// Removes the file of a segment before the first one of the log, or keeps it as a spare.
    pub fn retire(&mut self, segment: Segment) -> Result<(), StoreError> {
        assert!(segment.number < self.oldest, "segment {} is part of the log", segment.number);
        assert_eq!(segment.live_bytes, 0, "segment {} has live records", segment.number);
        // A file that a reader has open is removed and not reused: the reader still needs its bytes.
        let file = Arc::into_inner(segment.file);
        let retired = self.spares.retire(segment.number, file, u64::from(self.limits.segment_bytes));
        retired.map_err(|error| from_io(&error))
    }

    /// Settles the first pending frame as written: its records become visible to readers.
    fn keep_first(&mut self, is_durable: bool) -> Option<Result<(), StoreError>> {
        let PendingFrame { frame, records_at, end, .. } = self.pending.pop_front()?;
        self.first_pending += 1;
        let mut index = self.shared.index();
        index.segments.set_end(self.slot, end);
        let applied = index.apply(self.slot, records_at, frame.records());
        drop(index);
        if is_durable {
            assert!(self.active.synced <= end && end <= self.active.end, "frames are settled in order");
            self.active.synced = end;
            self.unsynced.retain(|unsynced| unsynced.end > end);
            self.recycle(frame);
        } else {
            self.unsynced.push(UnsyncedFrame { frame, end });
        }
        Some(applied.map_err(|(at, malformed)| corrupt(self.active.header.number, at, malformed)))
    }

    /// After a failure, once no sync is in flight: fails every pending frame and starts a new segment.
    fn rewrite_if_settled(&mut self) -> SyncResults {
        let Some(why) = self.sync_error.clone().filter(|_| self.is_settled()) else { return Vec::new() };
        if let Some(first) = self.pending.front() {
            self.active.overwrite_torn(first.at);
        }
        let failed: Vec<PendingFrame> = self.pending.drain(..).collect();
        self.first_pending += failed.len() as u64;
        // The new segment keeps failed frames from returning after a crash. If it fails, `make_ready` tries again.
        let _ = self.begin_again();
        let fail = |pending: PendingFrame| {
            self.recycle(pending.frame);
            Err(why.clone())
        };
        failed.into_iter().map(fail).collect()
    }

    /// A frame that is larger than a segment gets a segment of its own.
    fn has_room(&self, bytes: usize) -> bool {
        let end = self.active.end;
        end == SEGMENT_HEADER_BYTES || end as usize + bytes <= self.limits.segment_bytes as usize
    }

    fn begin_again(&mut self) -> Result<(), StoreError> {
        self.replace_active(self.active.synced).map_err(|error| match error {
            StoreError::Io(text) => StoreError::Io(format!(
                "after a failed write or sync no new segment can be started: {text}; check the disk"
            )),
            other => other,
        })
    }

    /// Starts a new segment. The current one ends at `at`.
    fn replace_active(&mut self, at: u32) -> Result<(), StoreError> {
        assert!(self.pending.is_empty(), "a segment is replaced while frames are pending");
        assert!(self.active.synced <= at && at <= self.active.end, "a sealed segment loses a durable frame");
        let SegmentHeader { number, salt, .. } = self.active.header;
        let end = LogEnd { number, salt, at: u64::from(at) };
        let frames = self.unsynced.iter_mut().map(|unsynced| &mut unsynced.frame);
        let made = make_active_segment(&mut self.spares, &self.dir, self.limits, end, self.oldest, frames);
        let (active, places) = made.map_err(|failed| {
            let error = from_io(&failed.error);
            if failed.may_be_there {
                self.sync_error.get_or_insert_with(|| error.clone());
            }
            error
        })?;
        let slot = push(&self.shared, &active)?;
        let mut index = self.shared.index();
        index.segments.set_end(self.slot, at);
        for (UnsyncedFrame { frame, .. }, records_at) in self.unsynced.drain(..).zip(places) {
            let applied = index.apply(slot, records_at, frame.records());
            applied.map_err(|(at, malformed)| corrupt(number + 1, at, malformed))?;
        }
        drop(index);
        (self.active, self.slot, self.sync_error) = (active, slot, None);
        // The log is valid without the note. Only the loss of the newest segment would go unnoticed.
        if let Err(error) = self.end_file.replace(durable_end(&self.active)) {
            tracing::warn!(%error, "end of log not noted; check the disk");
        }
        Ok(())
    }
}

/// Returns the place before which every frame of the log is durable.
fn durable_end(active: &ActiveSegment) -> LogEnd {
    LogEnd { number: active.header.number, salt: active.header.salt, at: u64::from(active.synced) }
}

/// The error of a frame or batch without a result. Only a bug leads here; it must not be acknowledged.
pub(super) fn unsettled() -> StoreError {
    StoreError::Io("a frame of the log was not settled; restart the server".into())
}

/// Adds the active segment to the index. Returns its slot.
fn push(shared: &ReadShared, active: &ActiveSegment) -> Result<usize, StoreError> {
    let SegmentHeader { number, salt, .. } = active.header;
    let segment = Segment { number, salt, file: Arc::clone(&active.file), end: active.end, live_bytes: 0 };
    let slot = shared.index().segments.push(segment);
    slot.ok_or_else(|| StoreError::Io(format!("the log has its limit of {SLOTS_MAX} segments")))
}
