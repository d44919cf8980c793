//! Finds the end of the newest segment, and tells a torn end from damage.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::scan::{ReadWindow, ScannedFrame, frame_at, read_range};
use super::search::{Next, STEP_BYTES, next_frame};
use super::{OpenedSegment, cannot};
use crate::StoreError;
use crate::embedded::error::corrupt;
use crate::embedded::log::LogEnd;
use crate::embedded::log::format::SEGMENT_HEADER_BYTES;
use crate::embedded::log::record::{RawRecord, Record, each};

/// The end of the newest segment, and the start of the log.
#[derive(Debug)]
pub(super) struct NewestSegment {
    /// The offset at which its frames end.
    pub end: u32,
    /// Every byte before this offset is durable.
    pub synced: u32,
    /// The number of the first segment of the log.
    pub oldest: u64,
    /// Whether bytes follow that may be left of a frame.
    pub is_torn: bool,
}

impl NewestSegment {
    /// Finds the last whole frame. In the frames that may not be durable, payloads must be whole too.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a frame is not whole that was durable: it is before `known`, the noted end of the log,
    /// or before the `synced` offset of a later frame.
    pub fn of(segment: &OpenedSegment, known: Option<LogEnd>) -> Result<Self, StoreError> {
        let number = segment.header.number;
        let failed = |error| cannot(number, "read", &error);
        let length = segment.file.metadata().map_err(failed)?.len();
        let mut tail = Self::at_first_gap(segment, length)?;
        // A note with another salt is about a file that this segment replaced.
        let known = known.filter(|known| (known.number, known.salt) == (number, segment.header.salt));
        if let Some(known) = known.filter(|known| known.at > u64::from(tail.end)) {
            return Err(corrupt(
                number,
                tail.end,
                format_args!("there is no whole frame, but the log had frames up to byte {}", known.at),
            ));
        }
        let (file, salt) = (&segment.file, segment.header.salt);
        match next_frame(file, salt, tail.end, tail.end, length).map_err(failed)? {
            Next::None => {}
            Next::At(at) => {
                let what = format_args!(
                    "the frame is damaged: it was durable when the frame at byte {at} was written"
                );
                return Err(corrupt(number, tail.end, what));
            }
            Next::TooMany => {
                return Err(corrupt(
                    number,
                    tail.end,
                    "there is no whole frame, and too many bytes that look like frames follow",
                ));
            }
        }
        tail.is_torn = known.is_none_or(|known| known.at != u64::from(tail.end))
            && !is_zero(&segment.file, u64::from(tail.end), length).map_err(failed)?;
        Ok(tail)
    }

    fn at_first_gap(segment: &OpenedSegment, length: u64) -> Result<Self, StoreError> {
        let number = segment.header.number;
        let failed = |error| cannot(number, "read", &error);
        let mut window = ReadWindow::new(&segment.file, length);
        let (mut at, mut synced, mut oldest) =
            (SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES, segment.header.oldest);
        // Frames that may not be durable.
        let mut uncertain = VecDeque::new();
        while let Some(found) = frame_at(&mut window, segment.header.salt, at).map_err(failed)? {
            synced = found.synced;
            uncertain.push_back((at, Self::oldest_in(number, &found)?));
            at = found.end;
            while let Some((_, named)) = uncertain.pop_front_if(|(at, _)| *at < synced) {
                oldest = named.unwrap_or(oldest);
            }
        }
        let mut end = at;
        for (at, named) in uncertain {
            if !payloads_are_whole(segment, &mut window, at).map_err(failed)? {
                end = at;
                break;
            }
            oldest = named.unwrap_or(oldest);
        }
        Ok(Self { end, synced: synced.min(end), oldest, is_torn: false })
    }

    fn oldest_in(number: u64, found: &ScannedFrame<'_>) -> Result<Option<u64>, StoreError> {
        let malformed = |malformed| corrupt(number, found.records_at, malformed);
        let mut oldest = None;
        for raw in each(found.records, 0) {
            if let Record::LogStart(named) = raw.and_then(RawRecord::parse).map_err(malformed)? {
                if !(1..=number).contains(&named) {
                    return Err(corrupt(number, found.records_at, "the oldest segment is out of range"));
                }
                oldest = Some(named);
            }
        }
        Ok(oldest)
    }
}

fn payloads_are_whole(segment: &OpenedSegment, window: &mut ReadWindow<'_>, at: u32) -> io::Result<bool> {
    let Some(found) = frame_at(window, segment.header.salt, at)? else { return Ok(false) };
    for raw in each(found.records, 0).flatten() {
        let Ok(Some(beside)) = raw.parse().map(|record| record.out_of_line()) else { continue };
        let range = beside.range(found.records_at + raw.at as u32);
        if range.end > u64::from(found.end) || !beside.is(&read_range(&segment.file, range, found.end)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_zero(file: &File, from: u64, length: u64) -> io::Result<bool> {
    let (mut bytes, mut at) = (vec![0; STEP_BYTES], from);
    while at < length {
        let bytes = &mut bytes[..STEP_BYTES.min((length - at) as usize)];
        file.read_exact_at(bytes, at)?;
        if bytes.iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += bytes.len() as u64;
    }
    Ok(true)
}
