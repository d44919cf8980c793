//! The log as the one who writes it sees it.
//!
//! Linux says once that a sync failed. What should have reached the disk counts as written from then on: programs
//! still read it from memory, the next sync succeeds, and a power cut shows that it was never there. So nothing is
//! ever written behind a frame whose sync failed. The log goes on in a new segment, whose header says that the old one ends
//! before that frame, and which repeats what was acknowledged and not yet synced (buffered commits, from memory).
//! Until such a segment is durable nothing is committed; once it is, what was refused cannot come back.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longshore_model::Durability;

use super::encode;
use super::error::{corrupt, from_io, is_full};
use super::format::SEGMENT_HEADER_BYTES;
use super::frame::Frame;
use super::head::Head;
use super::index::Segment;
use super::limits::LogLimits;
use super::names;
use super::readers::Shared;
use super::recovery::Recovered;
use super::segment::Header;
use super::spares::Spares;
use crate::StoreError;

/// Buffered commits are kept in memory until they are synced, which happens now if they are more than this.
const UNSYNCED_BYTES_MAX: usize = 8 << 20;

/// See the module.
#[derive(Debug)]
pub(super) struct Log {
    dir: PathBuf,
    limits: LogLimits,
    shared: Arc<Shared>,
    spares: Spares,
    /// The first segment that belongs to the log.
    oldest: u64,
    head: Head,
    slot: usize,
    /// Acknowledged, but not synced.
    unsynced: Vec<Frame>,
    /// Nothing may be written behind what was synced last.
    in_doubt: bool,
    /// An empty frame, for its memory.
    blank: Frame,
}

/// The end of the log that a new segment continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The number of the last segment; 0 if there is none.
    pub number: u64,
    /// Its salt.
    pub salt: u64,
    /// Where its frames end.
    pub at: u64,
}

impl Log {
    /// Continues a log in a new segment: what follows its end may be frames that a crash tore, and must stay nothing.
    pub fn open(dir: &Path, limits: LogLimits, recovered: Recovered) -> Result<Self, StoreError> {
        let Recovered { index, end, mut frames, oldest } = recovered;
        let shared = Arc::new(Shared::new(index));
        let mut spares = Spares::new(dir);
        let made = make_head(&mut spares, dir, limits, end, oldest, &mut frames);
        let (head, places) = made.map_err(|failed| from_io(&failed.error))?;
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
            head,
            slot,
            unsynced: Vec::new(),
            in_doubt: false,
            blank: Frame::default(),
        })
    }

    /// What those who read share with this.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The slot of the segment that is written to.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// A frame to fill.
    pub fn blank_frame(&mut self) -> Frame {
        std::mem::take(&mut self.blank)
    }

    /// Gives a frame back that is not needed.
    pub fn unused(&mut self, mut frame: Frame) {
        frame.clear();
        self.blank = frame;
    }

    /// Whether something acknowledged is not synced yet.
    pub fn is_unsynced(&self) -> bool {
        !self.unsynced.is_empty()
    }

    /// Writes a frame, and syncs it if it is to be durable. After an error it is not there, and will not be.
    pub fn append(&mut self, mut frame: Frame, durability: Durability) -> Result<(), StoreError> {
        self.make_ready(frame.bytes())?;
        let at = self.head.end;
        let records_at = match self.write(&mut frame, durability) {
            Ok(records_at) => records_at,
            Err(error) => {
                self.head.spoil(at);
                if self.in_doubt {
                    // What was refused must not come back. If this fails too, it is tried again before the next frame.
                    let _ = self.begin_again();
                }
                self.unused(frame);
                return Err(from_io(&error));
            }
        };
        let mut index = self.shared.index();
        index.segments.set_end(self.slot, self.head.end);
        let applied = index.apply(self.slot, records_at, frame.records());
        drop(index);
        match durability {
            Durability::Synced => {
                self.unsynced.clear();
                self.unused(frame);
            }
            Durability::Buffered => self.note_unsynced(frame),
        }
        applied.map_err(|(at, malformed)| corrupt(self.head.header.number, at, malformed))
    }

    /// Makes everything acknowledged durable.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if self.in_doubt {
            return self.begin_again();
        }
        if self.is_unsynced() {
            if let Err(error) = self.head.sync() {
                tracing::warn!(%error, "a sync of the log failed, going on in a new segment");
                self.in_doubt = true;
                return self.begin_again();
            }
            self.unsynced.clear();
        }
        Ok(())
    }

    /// Writes that the segments before this one belong to the log no more, durably.
    pub fn drop_before(&mut self, segment: u64) -> Result<(), StoreError> {
        let mut frame = self.blank_frame();
        encode::oldest(&mut frame, segment);
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

    fn write(&mut self, frame: &mut Frame, durability: Durability) -> io::Result<u32> {
        // A full disk takes no more, but has what it took.
        let records_at = self.head.write(frame).inspect_err(|error| self.in_doubt |= !is_full(error))?;
        if durability == Durability::Synced {
            self.head.sync().inspect_err(|_| self.in_doubt = true)?;
        }
        Ok(records_at)
    }

    fn note_unsynced(&mut self, frame: Frame) {
        self.unsynced.push(frame);
        if self.unsynced.iter().map(Frame::bytes).sum::<usize>() > UNSYNCED_BYTES_MAX {
            // If it fails, the writer tries again.
            let _ = self.sync();
        }
    }

    /// Sees to it that so many bytes can be written behind what is there.
    fn make_ready(&mut self, bytes: usize) -> Result<(), StoreError> {
        if self.in_doubt {
            self.begin_again()?;
        }
        if !self.has_room(bytes) {
            self.sync()?;
        }
        if !self.has_room(bytes) {
            self.replace_head(self.head.end)?;
        }
        Ok(())
    }

    /// What is bigger than a segment gets one of its own.
    fn has_room(&self, bytes: usize) -> bool {
        let end = self.head.end;
        end == SEGMENT_HEADER_BYTES || end as usize + bytes <= self.limits.segment_bytes as usize
    }

    fn begin_again(&mut self) -> Result<(), StoreError> {
        self.replace_head(self.head.synced).map_err(|error| match error {
            StoreError::Io(text) => {
                StoreError::Io(format!("an earlier failure cannot be made up for: {text}"))
            }
            other => other,
        })
    }

    /// Goes on in a new segment. The present one ends here.
    fn replace_head(&mut self, at: u32) -> Result<(), StoreError> {
        let Header { number, salt, .. } = self.head.header;
        let end = End { number, salt, at: u64::from(at) };
        let frames = &mut self.unsynced[..];
        let made = make_head(&mut self.spares, &self.dir, self.limits, end, self.oldest, frames);
        let (head, places) = made.map_err(|failed| {
            self.in_doubt |= failed.may_be_there;
            from_io(&failed.error)
        })?;
        let slot = push(&self.shared, &head)?;
        let mut index = self.shared.index();
        index.segments.set_end(self.slot, at);
        for (frame, records_at) in self.unsynced.drain(..).zip(places) {
            let applied = index.apply(slot, records_at, frame.records());
            applied.map_err(|(at, malformed)| corrupt(number + 1, at, malformed))?;
        }
        drop(index);
        (self.head, self.slot, self.in_doubt) = (head, slot, false);
        Ok(())
    }
}

/// Makes a segment known.
fn push(shared: &Shared, head: &Head) -> Result<usize, StoreError> {
    let Header { number, salt, .. } = head.header;
    let segment = Segment { number, salt, file: Arc::clone(&head.file), end: head.end, live_bytes: 0 };
    let slot = shared.index().segments.push(segment);
    slot.ok_or_else(|| StoreError::Io("the log has as many segments as there can be".into()))
}

/// Why there is no new segment, and whether a crash may show that there is one.
struct Failed {
    error: io::Error,
    may_be_there: bool,
}

impl Failed {
    fn before(error: io::Error) -> Self {
        Self { error, may_be_there: false }
    }
}

/// Makes a segment behind the end of the log, with these frames in it, and answers where their records are. It gets its
/// name when all of it is durable.
fn make_head(
    spares: &mut Spares,
    dir: &Path,
    limits: LogLimits,
    end: End,
    oldest: u64,
    frames: &mut [Frame],
) -> Result<(Head, Vec<u32>), Failed> {
    let number = end
        .number
        .checked_add(1)
        .ok_or_else(|| Failed::before(io::Error::other("segments have no more numbers")))?;
    let header = Header {
        number,
        salt: Header::new_salt(number),
        previous_end: end.at,
        previous_salt: end.salt,
        oldest: oldest.min(number),
    };
    let spare = spares.take().map_err(Failed::before)?;
    let named = dir.join(names::segment(number));
    let filled = fill(spare.file, header, limits, frames).map_err(Failed::before);
    let made = filled.and_then(|made| match fs::rename(&spare.path, &named) {
        Ok(()) => Ok(made),
        Err(error) => Err(Failed { may_be_there: !is_full(&error), error }),
    });
    // A file whose sync failed is not trusted again. One that cannot be removed is in nobody's way.
    let made = made.inspect_err(|_| _ = fs::remove_file(&spare.path))?;
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(|error| Failed { error, may_be_there: true })?;
    Ok(made)
}

fn fill(file: File, header: Header, limits: LogLimits, frames: &mut [Frame]) -> io::Result<(Head, Vec<u32>)> {
    let mut head = Head::begin(Arc::new(file), header, limits.ahead_bytes, limits.segment_bytes)?;
    let places = frames.iter_mut().map(|frame| head.write(frame)).collect::<io::Result<_>>()?;
    head.file.sync_all()?;
    head.synced = head.end;
    Ok((head, places))
}
