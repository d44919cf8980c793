//! Searches a segment for the next whole frame at any offset.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::scan::{ReadWindow, frame_at};
use crate::embedded::log::format::FRAME_HEADER_BYTES;
use crate::embedded::log::frame;

/// The number of bytes of one read.
pub(in crate::embedded) const STEP_BYTES: usize = 1 << 20;
/// Limit of the bytes that one search hashes. Only a payload made for that purpose reaches it.
const HASHED_BYTES_MAX: u64 = 8 << 30;
/// Bytes per read after a failed read: the disk can often read the neighbouring pages.
const PAGE_BYTES: usize = 4096;

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::embedded) enum Next {
    /// No whole frame follows.
    None,
    /// The offset of a whole frame.
    At(u32),
    /// The search reached [`HASHED_BYTES_MAX`].
    TooMany,
}

/// Searches from `gap + 1` to `end` for a frame that was written when the segment was durable beyond `synced_over`.
pub(in crate::embedded) fn next_frame(
    file: &File,
    salt: u64,
    gap: u32,
    synced_over: u32,
    end: u64,
) -> io::Result<Next> {
    let header_bytes = FRAME_HEADER_BYTES as usize;
    let mut window = ReadWindow::new(file, end);
    let (mut bytes, mut first, mut hashed) = (Vec::new(), u64::from(gap) + 1, 0);
    while first + u64::from(FRAME_HEADER_BYTES) <= end {
        bytes.resize((STEP_BYTES + header_bytes).min((end - first) as usize), 0);
        read_pages(file, &mut bytes, first);
        for (offset, header) in bytes.windows(header_bytes).enumerate() {
            let at = first + offset as u64;
            let Some(records) = promising(header, synced_over, at, end) else { continue };
            hashed += records;
            if hashed > HASHED_BYTES_MAX {
                return Ok(Next::TooMany);
            }
            if let Ok(at) = u32::try_from(at)
                && frame_at(&mut window, salt, at)?.is_some()
            {
                return Ok(Next::At(at));
            }
        }
        first += (bytes.len() - header_bytes + 1) as u64;
    }
    Ok(Next::None)
}

/// Returns the bytes of records if these bytes can be the header of a frame; `None` for nearly all bytes.
fn promising(header: &[u8], synced_over: u32, at: u64, end: u64) -> Option<u64> {
    // Zero in every frame.
    if header[20..] != [0; 4] {
        return None;
    }
    let header = frame::FrameHeader::decode(header.try_into().ok()?);
    let says_so = header.synced > synced_over && u64::from(header.synced) <= at;
    (says_so && header.records != 0 && at + header.bytes() <= end).then_some(u64::from(header.records))
}

/// Reads the readable pages and fills the others with zeros, which contain no frame.
fn read_pages(file: &File, bytes: &mut [u8], at: u64) {
    if file.read_exact_at(bytes, at).is_ok() {
        return;
    }
    for (number, page) in bytes.chunks_mut(PAGE_BYTES).enumerate() {
        if file.read_exact_at(page, at + (number * PAGE_BYTES) as u64).is_err() {
            page.fill(0);
        }
    }
}
