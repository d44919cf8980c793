//! What is still needed of the oldest segment, found frame by frame.

use std::fs::File;
use std::sync::Arc;

use crate::StoreError;
use crate::embedded::error::{corrupt, from_io};
use crate::embedded::log::coding::Malformed;
use crate::embedded::log::format::SEGMENT_HEADER_BYTES;
use crate::embedded::log::frame::Frame;
use crate::embedded::log::record::{RawRecord, each};
use crate::embedded::read::pool::ReadShared;
use crate::embedded::recovery::scan::{ReadWindow, frame_at, read_range};

/// A place in the oldest segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    /// The segment.
    number: u64,
    /// A frame of it.
    frame: u32,
    /// A record of that.
    record: usize,
}

impl Cursor {
    /// Whether it is a place in this segment.
    pub fn is_in(&self, source: &Source<'_>) -> bool {
        self.number == source.number
    }
}

/// The oldest segment.
pub(super) struct Source<'a> {
    shared: &'a ReadShared,
    slot: usize,
    number: u64,
    salt: u64,
    end: u32,
    file: Arc<File>,
}

impl<'a> Source<'a> {
    /// The segment in this slot.
    pub fn new(shared: &'a ReadShared, slot: usize) -> Option<Self> {
        let index = shared.index();
        let segment = index.segments.get(slot)?;
        let (number, salt, end) = (segment.number, segment.salt, segment.end);
        Some(Self { shared, slot, number, salt, end, file: Arc::clone(&segment.file) })
    }

    /// Where its frames begin.
    pub fn start(&self) -> Cursor {
        Cursor { number: self.number, frame: SEGMENT_HEADER_BYTES, record: 0 }
    }

    /// Adds what is needed to the frame, from a place on, until so many bytes were looked at or added.
    pub fn collect(&self, out: &mut Frame, next: &mut Cursor, bytes: u64) -> Result<(), StoreError> {
        let mut window = ReadWindow::new(&self.file, u64::from(self.end));
        let until = u64::from(next.frame) + bytes;
        while next.frame < self.end && u64::from(next.frame) < until {
            let found = frame_at(&mut window, self.salt, next.frame).map_err(|error| from_io(&error))?;
            let found = found.ok_or_else(|| self.malformed(next.frame, Malformed("a whole frame")))?;
            for raw in each(found.records, next.record) {
                let raw = raw.map_err(|malformed| self.malformed(found.records_at, malformed))?;
                next.record = raw.at;
                if out.bytes() as u64 >= bytes {
                    return Ok(());
                }
                self.add_if_needed(out, found.records_at + raw.at as u32, raw)?;
            }
            (next.frame, next.record) = (found.end, 0);
        }
        Ok(())
    }

    /// That the end is not reached: some of what is needed was not found.
    pub fn expect_more(&self, next: Cursor) -> Result<(), StoreError> {
        if next.frame < self.end {
            return Ok(());
        }
        Err(self.malformed(self.end, Malformed("a record that is needed")))
    }

    fn add_if_needed(&self, out: &mut Frame, at: u32, raw: RawRecord<'_>) -> Result<(), StoreError> {
        let record = raw.parse().map_err(|malformed| self.malformed(at, malformed))?;
        if !self.shared.index().is_needed(self.slot, at, &record) {
            return Ok(());
        }
        match record.out_of_line() {
            None => out.copy(raw.bytes, None),
            Some(beside) => {
                // As it is, whole or not: whoever reads it is told.
                let payload =
                    read_range(&self.file, beside.range(at), self.end).map_err(|error| from_io(&error))?;
                out.copy(raw.bytes, Some((beside.place_of_distance(raw.bytes.len()), payload.into())));
            }
        }
        Ok(())
    }

    fn malformed(&self, at: u32, malformed: Malformed) -> StoreError {
        corrupt(self.number, at, malformed)
    }
}
