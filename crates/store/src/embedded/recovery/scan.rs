//! Reads the frames of a segment.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use crate::embedded::log::format::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use crate::embedded::log::frame;

/// Bytes per read, unless more are requested.
const WINDOW_BYTES: u64 = 256 << 10;

/// A part of a file in memory.
#[derive(Debug)]
pub(in crate::embedded) struct ReadWindow<'f> {
    file: &'f File,
    /// The offset before which bytes may be read.
    end: u64,
    /// The offset of `bytes` in the file.
    at: u64,
    bytes: Vec<u8>,
    /// Least number of bytes per read.
    step: u64,
}

impl<'f> ReadWindow<'f> {
    /// Returns a window on the file's bytes before `end`.
    pub fn new(file: &'f File, end: u64) -> Self {
        Self::sized(file, end, WINDOW_BYTES)
    }

    /// Returns a window that reads at least `step` bytes at a time.
    pub fn sized(file: &'f File, end: u64, step: u64) -> Self {
        Self { file, end, at: 0, bytes: Vec::new(), step }
    }

    /// Returns `bytes` bytes at offset `at`; `None` if they reach beyond the end.
    pub fn get(&mut self, at: u64, bytes: u64) -> io::Result<Option<&[u8]>> {
        let Some(until) = at.checked_add(bytes).filter(|&until| until <= self.end) else { return Ok(None) };
        if at < self.at || until > self.at + self.bytes.len() as u64 {
            let length = bytes.max(self.step.min(self.end - at));
            self.bytes.resize(length as usize, 0);
            // After an error the content of the buffer is undefined.
            let read = self.file.read_exact_at(&mut self.bytes, at).inspect_err(|_| self.bytes.clear());
            self.at = at;
            read?;
        }
        let from = (at - self.at) as usize;
        Ok(self.bytes.get(from..from + bytes as usize))
    }
}

/// A frame whose header and records are whole. Its payloads are not checked.
#[derive(Clone, Copy, Debug)]
pub(in crate::embedded) struct ScannedFrame<'w> {
    /// The offset of the first record in the segment.
    pub records_at: u32,
    /// The bytes of all records.
    pub records: &'w [u8],
    /// The offset before which the segment was durable when the frame was written.
    pub synced: u32,
    /// The offset behind the frame's last byte.
    pub end: u32,
}

/// Returns the frame at offset `at`; `None` if the bytes there are no whole frame.
pub(in crate::embedded) fn frame_at<'w>(
    window: &'w mut ReadWindow<'_>,
    salt: u64,
    at: u32,
) -> io::Result<Option<ScannedFrame<'w>>> {
    let Some(header) = window.get(u64::from(at), u64::from(FRAME_HEADER_BYTES))? else { return Ok(None) };
    let Ok(header) = header.try_into().map(frame::FrameHeader::decode) else { return Ok(None) };
    let end = u64::from(at) + header.bytes();
    let Ok(end) = u32::try_from(end) else { return Ok(None) };
    if u64::from(end) > window.end {
        return Ok(None);
    }
    let bytes = u64::from(FRAME_HEADER_BYTES) + u64::from(header.records);
    let Some(bytes) = window.get(u64::from(at), bytes)? else { return Ok(None) };
    if !header.is_whole(bytes, salt, at) || !(SEGMENT_HEADER_BYTES..=at).contains(&header.synced) {
        return Ok(None);
    }
    let records = &bytes[FRAME_HEADER_BYTES as usize..];
    Ok(Some(ScannedFrame { records_at: at + FRAME_HEADER_BYTES, records, synced: header.synced, end }))
}

/// Reads a range of bytes, which must end before `end`.
pub(in crate::embedded) fn read_range(file: &File, range: Range<u64>, end: u32) -> io::Result<Vec<u8>> {
    if range.end > u64::from(end) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a payload reaches beyond the end"));
    }
    let mut bytes = vec![0; (range.end - range.start) as usize];
    file.read_exact_at(&mut bytes, range.start)?;
    Ok(bytes)
}
