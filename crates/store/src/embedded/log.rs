//! The log as the one who writes it sees it.
//!
//! A frame is written at once, and synced by whoever has a [`SyncTicket`] for it, while the next ones are written and
//! synced by others: the disk is waited for, not worked for, and several can do that at the same time. What becomes of a
//! frame is settled in order. A sync that succeeds speaks for every frame that was written before it began.
//!
//! Linux says once that a sync failed. What should have reached the disk counts as written from then on: programs
//! still read it from memory, the next sync succeeds, and a power cut shows that it was never there. So nothing is
//! ever built on a frame whose sync failed: what is on its way is refused with it. The log goes on in a new segment, whose
//! header says that the old one ends before that frame, and which repeats what was acknowledged and not yet synced
//! (buffered commits, from memory). Until such a segment is durable nothing is committed; once it is, what was
//! refused cannot come back.

pub(in crate::embedded) mod active_segment;
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
use super::index::Segment;
use super::read::pool::ReadShared;
use super::recovery::Recovered;
use super::write::encode;
use crate::StoreError;

/// Buffered commits are kept in memory until they are synced, which is to happen now if they are more than this.
const UNSYNCED_BYTES_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Log {
    dir: PathBuf,
    limits: SegmentLimits,
    shared: Arc<ReadShared>,
    spares: Spares,
    /// The first segment that belongs to the log.
    oldest: u64,
    active: ActiveSegment,
    slot: usize,
    /// Remembers how far the log goes.
    end_file: EndFile,
    /// Written and not settled, in order.
    pending: VecDeque<PendingFrame>,
    /// The number of the first of these.
    first_pending: u64,
    /// Syncs under way.
    tickets: usize,
    /// Acknowledged, but not synced.
    unsynced: Vec<UnsyncedFrame>,
    /// Nothing may be written behind what was synced last: why not.
    sync_error: Option<StoreError>,
    /// Empty frames, for their memory.
    free_frames: Vec<Frame>,
}

/// A frame of which nobody knows yet whether it is durable.
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

/// Leave to sync, for the time that nothing of the log is held. To be settled, whatever comes of it.
#[derive(Debug)]
#[must_use]
pub(super) struct SyncTicket {
    file: Arc<File>,
    /// The last frame that was written before.
    last: u64,
}

impl SyncTicket {
    /// Waits for the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// What became of frames, in the order in which they were written.
pub(super) type SyncResults = Vec<Result<(), StoreError>>;

impl Log {
    /// Continues a log in a new segment: what follows its end may be frames that a crash tore, and must stay nothing.
    pub fn open(dir: &Path, limits: SegmentLimits, recovered: Recovered) -> Result<Self, StoreError> {
        let Recovered { index, end, mut frames, oldest } = recovered;
        let shared = Arc::new(ReadShared::new(index));
        let mut spares = Spares::new(dir);
        let made = make_active_segment(&mut spares, dir, limits, end, oldest, frames.iter_mut());
        let (head, places) = made.map_err(|failed| from_io(&failed.error))?;
        let end_file = EndFile::write(dir, durable_end(&head)).map_err(|error| from_io(&error))?;
        let slot = push(&shared, &head)?;
        for (frame, records_at) in frames.iter().zip(places) {
            let applied = shared.index().apply(slot, records_at, frame.records());
            applied.map_err(|(at, malformed)| corrupt(head.header.number, at, malformed))?;
        }
        Ok(Self {
            dir: dir.to_owned(),
            limits,
            shared,
            spares,
            oldest,
            active: head,
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

    /// What those who read share with this.
    pub fn shared(&self) -> &Arc<ReadShared> {
        &self.shared
    }

    /// The slot of the segment that is written to.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// A frame to fill.
    pub fn blank_frame(&mut self) -> Frame {
        self.free_frames.pop().unwrap_or_default()
    }

    /// Gives a frame back that is not needed.
    pub fn unused(&mut self, mut frame: Frame) {
        frame.clear();
        if self.free_frames.len() <= SYNCS_MAX {
            self.free_frames.push(frame);
        }
    }

    /// Whether something acknowledged is not synced yet.
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Whether so much of it is not that it must be synced now.
    pub fn is_overdue(&self) -> bool {
        self.unsynced.iter().map(|unsynced| unsynced.frame.bytes()).sum::<usize>() > UNSYNCED_BYTES_MAX
    }

    /// Whether everything that was written is settled. What is not only [`Self::write`], [`Self::ticket`] and
    /// [`Self::settle`] may be called in the meantime.
    pub fn is_settled(&self) -> bool {
        self.tickets == 0
    }

    /// Whether a frame of so many bytes can be written as things are. If not, [`Self::make_ready`] sees to it.
    pub fn is_ready(&self, bytes: usize) -> bool {
        self.sync_error.is_none() && self.has_room(bytes)
    }

    /// Writes a frame. After an error it is not there, and will not be.
    pub fn write(&mut self, mut frame: Frame, durability: Durability) -> Result<(), StoreError> {
        let at = self.active.end;
        match self.active.write(&mut frame) {
            Ok(records_at) => {
                let end = self.active.end;
                self.pending.push_back(PendingFrame { frame, at, records_at, end, durability });
                Ok(())
            }
            Err(error) => {
                self.active.overwrite_torn(at);
                self.unused(frame);
                // A full disk takes no more, but has what it took.
                if !is_full(&error) {
                    self.sync_error = Some(from_io(&error));
                    self.rewrite_if_settled();
                }
                Err(from_io(&error))
            }
        }
    }

    /// Leave to sync what was written, one for each of [`SYNCS_MAX`] threads. None if nobody waits for that.
    pub fn ticket(&mut self, thread: usize) -> Option<SyncTicket> {
        self.pending.back().filter(|last| last.durability == Durability::Synced)?;
        self.tickets += 1;
        let file = Arc::clone(&self.active.for_syncs[thread % SYNCS_MAX]);
        Some(SyncTicket { file, last: self.first_pending + self.pending.len() as u64 - 1 })
    }

    /// What the sync says of the frames that wait for it.
    pub fn settle(&mut self, ticket: SyncTicket, synced: io::Result<()>) -> SyncResults {
        let last = ticket.last;
        drop(ticket);
        self.tickets -= 1;
        match synced {
            Ok(()) if self.sync_error.is_none() => {
                let covered = (last + 1).saturating_sub(self.first_pending);
                let mut settled: SyncResults = (0..covered).filter_map(|_| self.keep_first(true)).collect();
                settled.append(&mut self.settle_buffered());
                settled
            }
            Ok(()) => self.rewrite_if_settled(),
            Err(error) => {
                tracing::warn!(%error, "a sync of the log failed, going on in a new segment");
                self.sync_error.get_or_insert_with(|| from_io(&error));
                self.rewrite_if_settled()
            }
        }
    }

    /// Buffered frames with nothing unsettled before them need no sync.
    pub fn settle_buffered(&mut self) -> SyncResults {
        let mut settled = Vec::new();
        while self.pending.front().is_some_and(|first| first.durability == Durability::Buffered) {
            settled.extend(self.keep_first(false));
        }
        settled
    }

    /// Writes a frame and waits until it is settled. To be called in the quiet, as is all that follows.
    pub fn append(&mut self, frame: Frame, durability: Durability) -> Result<(), StoreError> {
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

    /// Makes everything acknowledged durable.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.sync_error.is_some() {
            return self.begin_again();
        }
        if self.is_unsynced() {
            if let Err(error) = self.active.sync() {
                tracing::warn!(%error, "a sync of the log failed, going on in a new segment");
                self.sync_error = Some(from_io(&error));
                return self.begin_again();
            }
            self.unsynced.clear();
        }
        Ok(())
    }

    /// Remembers how far the log goes, without waiting for the disk.
    pub fn note_end(&mut self) {
        self.end_file.note(durable_end(&self.active));
    }

    /// Makes everything acknowledged durable, and remembers durably that it is there: anything less is damage from now on.
    pub fn seal(&mut self) -> Result<(), StoreError> {
        self.sync()?;
        self.end_file.replace(durable_end(&self.active)).map_err(|error| from_io(&error))
    }

    /// Sees to it that so many bytes can be written behind what is there.
    pub fn make_ready(&mut self, bytes: usize) -> Result<(), StoreError> {
        if self.sync_error.is_some() {
            self.begin_again()?;
        }
        if !self.has_room(bytes) {
            self.sync()?;
        }
        if !self.has_room(bytes) {
            self.replace_head(self.active.end)?;
        }
        Ok(())
    }

    /// Writes that the segments before this one belong to the log no more, durably.
    pub fn drop_before(&mut self, segment: u64) -> Result<(), StoreError> {
        let mut frame = self.blank_frame();
        encode::log_start(&mut frame, segment);
        self.append(frame, Durability::Synced)?;
        self.oldest = segment;
        Ok(())
    }

    /// Removes the file of a segment that belongs to the log no more.
    pub fn retire(&mut self, segment: Segment) -> Result<(), StoreError> {
        // A reader that still has it goes on reading; then it is not used again.
        let file = Arc::into_inner(segment.file);
        let retired = self.spares.retire(segment.number, file, u64::from(self.limits.segment_bytes));
        retired.map_err(|error| from_io(&error))
    }

    /// The first frame that waits counts: readers see what it says.
    fn keep_first(&mut self, is_durable: bool) -> Option<Result<(), StoreError>> {
        let PendingFrame { frame, records_at, end, .. } = self.pending.pop_front()?;
        self.first_pending += 1;
        let mut index = self.shared.index();
        index.segments.set_end(self.slot, end);
        let applied = index.apply(self.slot, records_at, frame.records());
        drop(index);
        if is_durable {
            self.active.synced = end;
            self.unsynced.retain(|unsynced| unsynced.end > end);
            self.unused(frame);
        } else {
            self.unsynced.push(UnsyncedFrame { frame, end });
        }
        Some(applied.map_err(|(at, malformed)| corrupt(self.active.header.number, at, malformed)))
    }

    /// In doubt, with no sync under way any more: refuses what waits.
    fn rewrite_if_settled(&mut self) -> SyncResults {
        let Some(why) = self.sync_error.clone().filter(|_| self.is_settled()) else { return Vec::new() };
        if let Some(first) = self.pending.front() {
            self.active.overwrite_torn(first.at);
        }
        let refused: Vec<PendingFrame> = self.pending.drain(..).collect();
        self.first_pending += refused.len() as u64;
        // What is refused must not come back. If this fails too, it is tried again before the next frame.
        let _ = self.begin_again();
        let refuse = |pending: PendingFrame| {
            self.unused(pending.frame);
            Err(why.clone())
        };
        refused.into_iter().map(refuse).collect()
    }

    /// What is bigger than a segment gets one of its own.
    fn has_room(&self, bytes: usize) -> bool {
        let end = self.active.end;
        end == SEGMENT_HEADER_BYTES || end as usize + bytes <= self.limits.segment_bytes as usize
    }

    fn begin_again(&mut self) -> Result<(), StoreError> {
        self.replace_head(self.active.synced).map_err(|error| match error {
            StoreError::Io(text) => {
                StoreError::Io(format!("an earlier failure cannot be made up for: {text}"))
            }
            other => other,
        })
    }

    /// Goes on in a new segment. The present one ends here.
    fn replace_head(&mut self, at: u32) -> Result<(), StoreError> {
        let SegmentHeader { number, salt, .. } = self.active.header;
        let end = LogEnd { number, salt, at: u64::from(at) };
        let frames = self.unsynced.iter_mut().map(|unsynced| &mut unsynced.frame);
        let made = make_active_segment(&mut self.spares, &self.dir, self.limits, end, self.oldest, frames);
        let (head, places) = made.map_err(|failed| {
            let error = from_io(&failed.error);
            if failed.may_be_there {
                self.sync_error.get_or_insert_with(|| error.clone());
            }
            error
        })?;
        let slot = push(&self.shared, &head)?;
        let mut index = self.shared.index();
        index.segments.set_end(self.slot, at);
        for (UnsyncedFrame { frame, .. }, records_at) in self.unsynced.drain(..).zip(places) {
            let applied = index.apply(slot, records_at, frame.records());
            applied.map_err(|(at, malformed)| corrupt(number + 1, at, malformed))?;
        }
        drop(index);
        (self.active, self.slot, self.sync_error) = (head, slot, None);
        // The log is whole without it: only that its newest segment goes missing would not be noticed.
        if let Err(error) = self.end_file.replace(durable_end(&self.active)) {
            tracing::warn!(%error, "cannot remember how far the log goes; check the disk");
        }
        Ok(())
    }
}

/// How far the log goes without doubt.
fn durable_end(head: &ActiveSegment) -> LogEnd {
    LogEnd { number: head.header.number, salt: head.header.salt, at: u64::from(head.synced) }
}

/// For what nobody can say was kept: never an acknowledgement.
pub(super) fn unsettled() -> StoreError {
    StoreError::Io("a frame of the log was not settled; restart the server".into())
}

/// Makes a segment known.
fn push(shared: &ReadShared, head: &ActiveSegment) -> Result<usize, StoreError> {
    let SegmentHeader { number, salt, .. } = head.header;
    let segment = Segment { number, salt, file: Arc::clone(&head.file), end: head.end, live_bytes: 0 };
    let slot = shared.index().segments.push(segment);
    slot.ok_or_else(|| StoreError::Io("the log has as many segments as there can be".into()))
}
