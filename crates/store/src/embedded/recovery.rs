//! Opening the log: which segments belong to it, where it ends, and what it says.

pub(in crate::embedded) mod data_dir;
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
use super::index::{Index, Segment};
use super::log::LogEnd;
use super::log::end_file::EndFile;
use super::log::format::SEGMENT_HEADER_BYTES;
use super::log::frame::Frame;
use super::log::limits::SegmentLimits;
use super::log::names;
use super::log::record::each;
use super::log::segment::SegmentHeader;
use crate::StoreError;

/// Written again at once.
const PAGE_BYTES: u64 = 4096;

/// A log that was opened.
#[derive(Debug)]
pub(super) struct Recovered {
    /// What it says, up to its end.
    pub index: Index,
    /// Where it ends.
    pub end: LogEnd,
    /// What is to follow there: the frames of a newest segment that is made anew.
    pub frames: Vec<Frame>,
    /// The first segment that belongs to it.
    pub oldest: u64,
}

impl Recovered {
    /// A log without segments.
    pub fn nothing() -> Self {
        Self { index: Index::default(), end: LogEnd::NOTHING, frames: Vec::new(), oldest: 1 }
    }
}

/// A segment that was found.
struct OpenedSegment {
    file: File,
    header: SegmentHeader,
}

/// Reads the log in this folder. `limits` say whether its newest segment is short.
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
    // Those before were given up, and the server stopped before their files were.
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
    // A file with something in it that nobody can read stays as it is.
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

/// The frames of a segment, to be written again; `None` if a payload is damaged.
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

/// The numbers of the segments, ascending. What is left of others is removed.
fn list(dir: &Path) -> Result<Vec<u64>, StoreError> {
    let failed = |error: io::Error| StoreError::Io(format!("cannot read the folder `log`: {error}"));
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

/// The server before may have been killed after a sync had failed: what is read here may be in memory only.
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
        return Err(corrupt(number, 24_u32, "the segment behind it continues another one"));
    }
    let length = segment.file.metadata().map_err(|error| cannot(number, "read", &error))?.len();
    let end = u32::try_from(seal.previous_end).ok();
    match end.filter(|&end| end >= SEGMENT_HEADER_BYTES && u64::from(end) <= length) {
        Some(end) => replay(index, segment, end),
        None => Err(corrupt(number, length, "the segment is shorter than the one behind it says")),
    }
}

/// Takes in all frames of a segment up to its end; there must be frames up to there.
fn replay(index: &mut Index, segment: OpenedSegment, end: u32) -> Result<(), StoreError> {
    let OpenedSegment { file, header: SegmentHeader { number, salt, .. } } = segment;
    let file = Arc::new(file);
    let known = Segment { number, salt, file: Arc::clone(&file), end, live_bytes: 0 };
    let slot =
        index.segments.push(known).ok_or_else(|| StoreError::Io("the log has too many segments".into()))?;
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
