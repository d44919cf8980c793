//! Finds the live records of the oldest segment, frame by frame.

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
    /// The segment's number.
    number: u64,
    /// The offset of a frame in the segment.
    frame: u32,
    /// The offset of a record among the frame's records.
    record: usize,
}

impl Cursor {
    /// Whether the place is in this segment.
    pub fn is_in(&self, source: &Source<'_>) -> bool {
        self.number == source.number
    }
}

/// The segment from which live records are copied: the oldest one.
pub(super) struct Source<'a> {
    shared: &'a ReadShared,
    slot: usize,
    number: u64,
    salt: u64,
    end: u32,
    file: Arc<File>,
}

impl<'a> Source<'a> {
    /// Returns the segment in this slot.
    pub fn new(shared: &'a ReadShared, slot: usize) -> Option<Self> {
        let index = shared.index();
        let segment = index.segments.get(slot)?;
        let (number, salt, end) = (segment.number, segment.salt, segment.end);
        Some(Self { shared, slot, number, salt, end, file: Arc::clone(&segment.file) })
    }

    /// Returns the place of the first record.
    pub fn start(&self) -> Cursor {
        Cursor { number: self.number, frame: SEGMENT_HEADER_BYTES, record: 0 }
    }

    /// Adds live records to the frame, from `next` on, until `bytes` bytes were scanned or added. Moves `next`.
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
                self.add_if_live(out, found.records_at + raw.at as u32, raw)?;
            }
            (next.frame, next.record) = (found.end, 0);
        }
        Ok(())
    }

    /// Fails at the end of the segment: it has live bytes, but the scan found no more live records.
    pub fn expect_more(&self, next: Cursor) -> Result<(), StoreError> {
        if next.frame < self.end {
            return Ok(());
        }
        Err(self.malformed(self.end, Malformed("a live record")))
    }

    fn add_if_live(&self, out: &mut Frame, at: u32, raw: RawRecord<'_>) -> Result<(), StoreError> {
        let record = raw.parse().map_err(|malformed| self.malformed(at, malformed))?;
        if !self.shared.index().is_live(self.slot, at, &record) {
            return Ok(());
        }
        match record.out_of_line() {
            None => out.copy(raw.bytes, None),
            Some(beside) => {
                // A damaged payload is copied as it is: its hash in the record tells the reader.
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
