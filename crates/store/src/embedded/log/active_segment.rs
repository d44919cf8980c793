//! The active segment: the one file of the log that is written to.
//!
//! Frames are written in order, in whole pages. Up to [`SYNCS_MAX`] syncs run concurrently, each on an open file of its
//! own, because Linux reports a failed write once per open file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use longshore_direct_io::{Direct, PAGE_BYTES, Pages};

use super::format::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use super::frame::Frame;
use super::segment::SegmentHeader;

/// Zeros are written in whole pages, so that the kernel does not read a page to change a part of it.
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
/// Bytes of zeros per write past the page cache.
const ZEROS_BYTES_MAX: usize = 256 << 10;

/// Limit of concurrent syncs of the log: also the number of writer threads.
pub(in crate::embedded) const SYNCS_MAX: usize = 4;

/// The active segment. `synced <= end`; both are offsets in bytes from the start of the file.
#[derive(Debug)]
pub(in crate::embedded) struct ActiveSegment {
    pub header: SegmentHeader,
    /// The file. Readers share it.
    pub file: Arc<File>,
    /// The file, opened once for each writer thread. Linux reports a failed write once per open file: of two threads that
    /// share one, one would see its sync succeed.
    pub for_syncs: [Arc<File>; SYNCS_MAX],
    /// The offset of the next frame.
    pub end: u32,
    /// Every byte before this offset is durable.
    pub synced: u32,
    /// The bytes before `end` in its page.
    tail: Vec<u8>,
    pages: Pages,
    direct: Direct,
    ahead: Preallocation,
}

/// Writes zeros ahead of the frames: a sync of a file that has grown writes the file's length too, which takes one more
/// write of the disk.
#[derive(Debug)]
struct Preallocation {
    /// Bytes by which the file is lengthened at a time.
    step: u64,
    /// The file's length in bytes; `u64::MAX` after lengthening failed, which ends it.
    length: u64,
    /// The length in bytes up to which the file is lengthened ahead of need.
    limit: u64,
    zeros: Pages,
}

impl ActiveSegment {
    /// Starts a segment in a new file or a spare. Does not sync.
    pub fn begin(
        file: Arc<File>,
        path: &Path,
        header: SegmentHeader,
        ahead_bytes: u32,
        segment_bytes: u32,
    ) -> io::Result<Self> {
        let open = || File::open(path).map(Arc::new);
        let for_syncs = [open()?, open()?, open()?, open()?];
        let length = file.metadata()?.len();
        file.write_all_at(&header.encode(), 0)?;
        let ahead = Preallocation {
            step: u64::from(ahead_bytes),
            length: length.max(u64::from(SEGMENT_HEADER_BYTES)),
            limit: u64::from(segment_bytes),
            zeros: Pages::default(),
        };
        let (end, synced) = (SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES);
        let (tail, pages, direct) = (Vec::new(), Pages::default(), Direct::to_write(path));
        Ok(Self { header, file, for_syncs, end, synced, tail, pages, direct, ahead })
    }

    /// Writes a frame at `end`. Returns the offset of its records.
    pub fn write(&mut self, frame: &mut Frame) -> io::Result<u32> {
        let at = self.end;
        assert_eq!(self.tail.len(), at as usize % PAGE_BYTES, "the tail is the last page up to the end");
        assert!(self.synced <= at, "the segment is durable up to {}, but ends at {at}", self.synced);
        let bytes = (self.tail.len() + frame.bytes()).next_multiple_of(PAGE_BYTES);
        let out = self.pages.begin(bytes);
        out.extend_from_slice(&self.tail);
        frame.seal(out, self.header.salt, at, self.synced);
        let written = self.pages.end();
        let first = u64::from(at) - self.tail.len() as u64;
        self.write_pages(first)?;
        self.end = (first + written as u64) as u32;
        self.tail.clear();
        self.tail.extend_from_slice(&self.pages.bytes()[written - written % PAGE_BYTES..written]);
        Ok(at + FRAME_HEADER_BYTES)
    }

    fn write_pages(&mut self, at: u64) -> io::Result<()> {
        let pages = self.pages.bytes();
        let end = at + pages.len() as u64;
        if self.ahead.is_large(pages.len() as u64) {
            self.ahead.length = self.ahead.length.max(end);
            if self.direct.write(pages, at)? {
                return Ok(());
            }
        } else {
            self.ahead.make_room(&self.file, &mut self.direct, end);
        }
        self.file.write_all_at(pages, at)
    }

    /// Makes every written frame durable. No other sync may be in flight.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced = self.end;
        Ok(())
    }

    /// Overwrites the header of the failed frame at `at`, so that a restart does not find it. May fail: the disk has just
    /// failed, and the next segment's header excludes the frame as well.
    pub fn overwrite_torn(&self, at: u32) {
        let _ = self.file.write_all_at(&ZEROS[..FRAME_HEADER_BYTES as usize], u64::from(at));
    }
}

impl Preallocation {
    /// Whether a write of `bytes` bytes is too large for preallocation: zeros below it would cost more than they save.
    fn is_large(&self, bytes: u64) -> bool {
        bytes > self.step / 16
    }

    /// Lengthens the file if a write up to `until` comes near its end.
    fn make_room(&mut self, file: &File, direct: &mut Direct, until: u64) {
        if until + self.step / 4 <= self.length {
            return;
        }
        // Preallocation is for speed only. If the disk has failed, the write of the next frame fails too.
        self.length = self.lengthen(file, direct, until).unwrap_or(u64::MAX);
    }

    /// Writes zeros past the page cache, which takes half the time. Through the page cache it writes single pages: Linux
    /// keeps the bytes of one write in one folio, and writes back the whole folio whenever a commit changes a part.
    fn lengthen(&mut self, file: &File, direct: &mut Direct, until: u64) -> io::Result<u64> {
        let page = PAGE_BYTES as u64;
        let aim = (until + self.step).min(self.limit).max(until).next_multiple_of(page);
        let mut end = self.length.next_multiple_of(page).max(until);
        while end < aim {
            let bytes = usize::try_from(aim - end).unwrap_or(ZEROS_BYTES_MAX).min(ZEROS_BYTES_MAX);
            if self.zeros.bytes().len() != bytes {
                self.zeros.begin(bytes);
                self.zeros.fill(bytes);
            }
            if direct.write(self.zeros.bytes(), end)? {
                end += bytes as u64;
            } else {
                file.write_all_at(&ZEROS, end)?;
                end += page;
            }
        }
        Ok(end)
    }
}
