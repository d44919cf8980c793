//! Scrubbing: reads the stored files in small steps, so that damage is known before a damaged record is needed.
//!
//! Reads the sealed segments and the large payloads that their live records name. Drops the page cache of a range before
//! reading it, so that the bytes come from the disk where the kernel allows it.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blob_file::{BLOBS, check_blob, drop_from_memory};
use super::log::format::SEGMENT_HEADER_BYTES;
use super::log::payload::PayloadRef;
use super::log::record::{OutcomeRecord, RawRecord, Record, each};
use super::log::segment::SegmentHeader;
use super::read::pool::ReadShared;
use super::recovery::scan::{ReadWindow, ScannedFrame, frame_at};
use super::recovery::search::{Next, next_frame};
use super::verify::check_out_of_line;
use super::walk::Damage;

/// Reads the files of an open store in passes: each pass reads every sealed segment and every large payload it names.
#[derive(Debug)]
pub struct Scrub {
    shared: Arc<ReadShared>,
    blobs: PathBuf,
    /// The next segment number and offset to read.
    next: (u64, u32),
    /// Records of large payloads that are to be read next.
    named: VecDeque<Named>,
}

/// The result of one step of a [`Scrub`].
#[derive(Debug, Default)]
pub struct Scrubbed {
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The damages that were found, in the order of reading.
    pub damages: Vec<Damage>,
    /// Whether the pass is complete; the next step begins another one.
    pub is_pass_over: bool,
}

/// A record that names a large payload.
#[derive(Debug)]
struct Named {
    segment: u64,
    at: u32,
    record: Vec<u8>,
}

/// A segment to which no frame is added.
struct Sealed {
    slot: usize,
    number: u64,
    salt: u64,
    end: u32,
    file: Arc<File>,
}

impl Scrub {
    pub(super) fn new(shared: Arc<ReadShared>, dir: &Path) -> Self {
        Self { shared, blobs: dir.join(BLOBS), next: (0, 0), named: VecDeque::new() }
    }

    /// Reads on until `bytes` bytes are read or the pass is complete. Exceeds `bytes` by at most one frame or payload.
    /// Blocks.
    pub fn step(&mut self, bytes: u64) -> Scrubbed {
        let mut scrubbed = Scrubbed::default();
        while scrubbed.bytes < bytes {
            if let Some(named) = self.named.pop_front() {
                self.read_blob(&named, &mut scrubbed);
                continue;
            }
            let Some(sealed) = self.sealed() else {
                self.next = (0, 0);
                scrubbed.is_pass_over = true;
                break;
            };
            self.read_segment(&sealed, bytes, &mut scrubbed);
        }
        scrubbed
    }

    /// Returns the first sealed segment from `next` on. Segments may be removed between steps.
    fn sealed(&self) -> Option<Sealed> {
        let index = self.shared.index();
        let newest = index.segments.slots().next_back();
        let mut slots = index.segments.slots().filter(|slot| Some(*slot) != newest);
        slots.find_map(|slot| {
            let segment = index.segments.get(slot).filter(|segment| segment.number >= self.next.0)?;
            let (number, salt, end) = (segment.number, segment.salt, segment.end);
            Some(Sealed { slot, number, salt, end, file: Arc::clone(&segment.file) })
        })
    }

    fn read_segment(&mut self, sealed: &Sealed, bytes: u64, scrubbed: &mut Scrubbed) {
        let mut at = if sealed.number == self.next.0 { self.next.1 } else { SEGMENT_HEADER_BYTES };
        drop_from_memory(&sealed.file, u64::from(at), bytes);
        if at == SEGMENT_HEADER_BYTES
            && let Err(error) = SegmentHeader::read(&sealed.file, sealed.number)
        {
            scrubbed.damages.push(Damage::in_segment(sealed.number, 0_u32, error));
        }
        let mut window = ReadWindow::new(&sealed.file, u64::from(sealed.end));
        while at < sealed.end && scrubbed.bytes < bytes {
            let end = match frame_at(&mut window, sealed.salt, at) {
                Ok(Some(found)) => {
                    self.read_frame(sealed, found, scrubbed);
                    found.end
                }
                Ok(None) => skip(sealed, at, "there is no whole frame".into(), scrubbed),
                Err(error) => skip(sealed, at, format!("cannot be read: {error}"), scrubbed),
            };
            scrubbed.bytes += u64::from(end - at);
            at = end;
        }
        self.next =
            if at < sealed.end { (sealed.number, at) } else { (sealed.number + 1, SEGMENT_HEADER_BYTES) };
    }

    fn read_frame(&mut self, sealed: &Sealed, found: ScannedFrame<'_>, scrubbed: &mut Scrubbed) {
        for raw in each(found.records, 0) {
            let at = found.records_at + raw.as_ref().map_or(0, |raw| raw.at) as u32;
            let parsed = raw.and_then(|raw| Ok((raw, raw.parse()?)));
            let (raw, record) = match parsed {
                Ok(parsed) => parsed,
                Err(malformed) => {
                    scrubbed.damages.push(Damage::in_segment(sealed.number, at, malformed));
                    continue;
                }
            };
            if let Some(beside) = record.out_of_line()
                && let Err(what) = check_out_of_line(&sealed.file, beside, at, found.end)
            {
                scrubbed.damages.push(Damage::in_segment(sealed.number, beside.range(at).start, what));
            }
            let is_here = || !self.shared.index().has_remote_payloads();
            if blob_of(&record).is_some()
                && is_here()
                && self.shared.index().is_live(sealed.slot, at, &record)
            {
                self.named.push_back(Named { segment: sealed.number, at, record: raw.bytes.to_vec() });
            }
        }
    }

    fn read_blob(&self, named: &Named, scrubbed: &mut Scrubbed) {
        let Ok(record) = RawRecord::at(&named.record, 0).and_then(RawRecord::parse) else { return };
        let Some((name, bytes)) = blob_of(&record) else { return };
        if !self.is_live(named, &record) {
            return;
        }
        let read = check_blob(&self.blobs, name, bytes);
        scrubbed.bytes += read.as_ref().copied().unwrap_or(0);
        // A row is deleted before its file. If the record is still live, the file is damaged or missing.
        if let Err(what) = read
            && self.is_live(named, &record)
        {
            scrubbed.damages.push(Damage { file: format!("{BLOBS}/{name}"), at: 0, what });
        }
    }

    fn is_live(&self, named: &Named, record: &Record<'_>) -> bool {
        let index = self.shared.index();
        let mut slots = index.segments.slots();
        let slot = slots
            .find(|&slot| index.segments.get(slot).is_some_and(|segment| segment.number == named.segment));
        slot.is_some_and(|slot| index.is_live(slot, named.at, record))
    }
}

/// Adds a damage at `at`. Returns the offset of the next whole frame.
fn skip(sealed: &Sealed, at: u32, what: String, scrubbed: &mut Scrubbed) -> u32 {
    let next = next_frame(&sealed.file, sealed.salt, at, SEGMENT_HEADER_BYTES - 1, u64::from(sealed.end));
    scrubbed.damages.push(Damage::in_segment(sealed.number, at, what));
    match next {
        Ok(Next::At(next)) => next,
        _ => sealed.end,
    }
}

fn blob_of<'a>(record: &Record<'a>) -> Option<(&'a str, u64)> {
    match *record {
        Record::Input(_, PayloadRef::Blob(name, bytes))
        | Record::Outcome(_, OutcomeRecord { output: Some(PayloadRef::Blob(name, bytes)), .. }) => {
            Some((name, bytes))
        }
        _ => None,
    }
}
