//! Recovery: finds the segments and the end of the log, and builds the index.

pub(in crate::embedded) mod data_dir;
mod missing_log;
mod newest_segment;
pub(in crate::embedded) mod scan;
pub(in crate::embedded) mod search;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::iter::repeat;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use self::newest_segment::NewestSegment;
use self::scan::{ReadWindow, frame_at, read_range};
use super::error::corrupt;
use super::index::{Index, SLOTS_MAX, Segment};
use super::log::LogEnd;
use super::log::end_file::{EndFile, UNPROVEN_END};
use super::log::format::SEGMENT_HEADER_BYTES;
use super::log::frame::Frame;
use super::log::limits::SegmentLimits;
use super::log::names;
use super::log::record::each;
use super::log::segment::SegmentHeader;
use crate::StoreError;

/// Bytes per write when frames are written again.
const PAGE_BYTES: u64 = 4096;

/// A recovered log, to be continued by `Log::open`.
#[derive(Debug)]
pub(super) struct Recovered {
    /// The index of the log up to `end`.
    pub index: Index,
    pub end: LogEnd,
    /// The frames of a short newest segment, to be written to a new segment behind `end`.
    pub frames: Vec<Frame>,
    /// The number of the first segment of the log.
    pub oldest: u64,
}

impl Recovered {
    /// Returns a log without segments.
    pub fn nothing() -> Self {
        Self { index: Index::default(), end: LogEnd::NOTHING, frames: Vec::new(), oldest: 1 }
    }
}

/// A segment file with a valid header.
struct OpenedSegment {
    file: File,
    header: SegmentHeader,
}

/// Reads the log in the directory `dir`. `limits` give the size of a short newest segment.
///
/// # Errors
/// [`StoreError::Corrupt`] if a durable frame is damaged or missing.
pub(super) fn recover(dir: &Path, limits: SegmentLimits) -> Result<Recovered, StoreError> {
    let known = EndFile::read(dir)?;
    let mut numbers = list(dir)?;
    let newest = numbers.pop();
    if let Some(known) = known.filter(|known| newest.is_none_or(|newest| newest < known.number)) {
        return Err(corrupt(known.number, 0_u32, "the file is missing"));
    }
    let Some(newest) = newest else {
        return Ok(Recovered::nothing());
    };
    let newest = open(dir, newest)?;
    let tail = NewestSegment::of(&newest, known)?;
    if known.is_none() && (tail.end > SEGMENT_HEADER_BYTES || !numbers.is_empty()) {
        tracing::warn!(
            "the log has records, but there is no file `{}`: {UNPROVEN_END}; this is normal after `longshore restore`, \
             and for a directory that an old version wrote",
            names::END
        );
    }
    // Compaction removed the earlier segments from the log, and the server stopped before it removed the files.
    for &number in numbers.iter().filter(|&&number| number < tail.oldest) {
        remove(dir, &names::segment(number))?;
    }
    numbers.retain(|&number| number >= tail.oldest);
    let mut segments = Vec::new();
    for (expected, found) in
        (tail.oldest..newest.header.number).zip(numbers.into_iter().map(Some).chain(repeat(None)))
    {
        if found != Some(expected) {
            return Err(corrupt(expected, 0_u32, "the file is missing"));
        }
        segments.push(open(dir, expected)?);
    }
    let mut index = Index::default();
    let seals: Vec<SegmentHeader> =
        segments.iter().chain([&newest]).skip(1).map(|segment| segment.header).collect();
    for (segment, seal) in segments.into_iter().zip(seals) {
        replay_sealed(&mut index, segment, seal)?;
    }
    let SegmentHeader { number, salt, previous_end, previous_salt, .. } = newest.header;
    // A segment with a torn end or a damaged payload is kept as it is, for later analysis.
    if tail.end <= limits.short_bytes
        && !tail.is_torn
        && let Some(frames) = frames(&newest, tail.end)?
    {
        let end = LogEnd { number: number - 1, salt: previous_salt, at: previous_end };
        return Ok(Recovered { index, end, frames, oldest: tail.oldest });
    }
    make_durable(&newest.file, tail.synced, tail.end).map_err(|error| cannot(number, "write", &error))?;
    replay(&mut index, newest, tail.end)?;
    let end = LogEnd { number, salt, at: u64::from(tail.end) };
    Ok(Recovered { index, end, frames: Vec::new(), oldest: tail.oldest })
}

/// Returns the frames of a segment; `None` if a payload is damaged.
fn frames(segment: &OpenedSegment, end: u32) -> Result<Option<Vec<Frame>>, StoreError> {
    let OpenedSegment { file, header: SegmentHeader { number, salt, .. } } = segment;
    let failed = |error| cannot(*number, "read", &error);
    let mut window = ReadWindow::new(file, u64::from(end));
    let (mut at, mut frames) = (SEGMENT_HEADER_BYTES, Vec::new());
    while let Some(found) = frame_at(&mut window, *salt, at).map_err(failed)? {
        let mut frame = Frame::default();
        for raw in each(found.records, 0) {
            let malformed = |malformed| corrupt(*number, found.records_at, malformed);
            let raw = raw.map_err(malformed)?;
            let beside = raw.parse().map_err(malformed)?.out_of_line();
            let Some(beside) = beside else {
                frame.copy(raw.bytes, None);
                continue;
            };
            let range = beside.range(found.records_at + raw.at as u32);
            if range.end > u64::from(found.end) {
                return Ok(None);
            }
            let payload = read_range(file, range, found.end).map_err(failed)?;
            if !beside.is(&payload) {
                return Ok(None);
            }
            frame.copy(raw.bytes, Some((beside.place_of_distance(raw.bytes.len()), payload.into())));
        }
        frames.push(frame);
        at = found.end;
    }
    Ok(Some(frames))
}

/// Returns the numbers of the segments, ascending. Removes spare files.
fn list(dir: &Path) -> Result<Vec<u64>, StoreError> {
    let failed = |error: io::Error| StoreError::Io(format!("cannot read the directory `log`: {error}"));
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if let Some(number) = names::number_of(&name) {
            numbers.insert(number);
        } else if names::is_spare(&name) {
            fs::remove_file(dir.join(&name)).map_err(failed)?;
        }
    }
    Ok(numbers.into_iter().collect())
}

fn remove(dir: &Path, name: &str) -> Result<(), StoreError> {
    fs::remove_file(dir.join(name))
        .map_err(|error| StoreError::Io(format!("cannot remove `log/{name}`: {error}")))
}

fn cannot(number: u64, what: &str, error: &io::Error) -> StoreError {
    StoreError::Io(format!("cannot {what} `log/{}`: {error}", names::segment(number)))
}

fn open(dir: &Path, number: u64) -> Result<OpenedSegment, StoreError> {
    let file = File::options().read(true).write(true).open(dir.join(names::segment(number)));
    let file = file.map_err(|error| cannot(number, "open", &error))?;
    let header = SegmentHeader::read(&file, number)?;
    Ok(OpenedSegment { file, header })
}

/// Writes the frames behind `synced` again and syncs them. The last server may have been killed after a failed sync: the
/// frames may be in the page cache only, and a sync alone would not write them.
fn make_durable(file: &File, synced: u32, end: u32) -> io::Result<()> {
    let mut at = u64::from(synced) / PAGE_BYTES * PAGE_BYTES;
    while at < u64::from(end) {
        let mut page = [0; PAGE_BYTES as usize];
        let page = &mut page[..PAGE_BYTES.min(u64::from(end) - at) as usize];
        file.read_exact_at(page, at)?;
        file.write_all_at(page, at)?;
        at += PAGE_BYTES;
    }
    file.sync_data()
}

fn replay_sealed(index: &mut Index, segment: OpenedSegment, seal: SegmentHeader) -> Result<(), StoreError> {
    let number = segment.header.number;
    if seal.previous_salt != segment.header.salt {
        return Err(corrupt(number, 24_u32, "the next segment continues another one"));
    }
    let length = segment.file.metadata().map_err(|error| cannot(number, "read", &error))?.len();
    let end = u32::try_from(seal.previous_end).ok();
    match end.filter(|&end| end >= SEGMENT_HEADER_BYTES && u64::from(end) <= length) {
        Some(end) => replay(index, segment, end),
        None => Err(corrupt(number, length, "the segment is shorter than the next one says")),
    }
}

/// Applies all frames of a segment to the index. Every frame before `end` must be whole.
fn replay(index: &mut Index, segment: OpenedSegment, end: u32) -> Result<(), StoreError> {
    let OpenedSegment { file, header: SegmentHeader { number, salt, .. } } = segment;
    let file = Arc::new(file);
    let known = Segment { number, salt, file: Arc::clone(&file), end, live_bytes: 0 };
    let too_many = || StoreError::Io(format!("the log has more segments than the limit of {SLOTS_MAX}"));
    let slot = index.segments.push(known).ok_or_else(too_many)?;
    let mut window = ReadWindow::new(&file, u64::from(end));
    let mut at = SEGMENT_HEADER_BYTES;
    while at < end {
        let found = frame_at(&mut window, salt, at).map_err(|error| cannot(number, "read", &error))?;
        let found = found.ok_or_else(|| corrupt(number, at, "the frame is damaged"))?;
        let applied = index.apply(slot, found.records_at, found.records);
        applied.map_err(|(at, malformed)| corrupt(number, at, malformed))?;
        at = found.end;
    }
    Ok(())
}
