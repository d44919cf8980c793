//! The segment that is written to.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use longshore_direct_io::{Direct, PAGE_BYTES, Pages};

use super::format::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use super::frame::Frame;
use super::segment::SegmentHeader;

/// Written in whole pages: the kernel then never has to read one first to change a part of it.
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
/// As many at once where they go past the page cache.
const ZEROS_BYTES_MAX: usize = 256 << 10;

/// So many syncs can be under way at once.
pub(in crate::embedded) const SYNCS_MAX: usize = 4;

/// See the module.
#[derive(Debug)]
pub(in crate::embedded) struct ActiveSegment {
    /// The segment's own words.
    pub header: SegmentHeader,
    /// The file. Readers share it.
    pub file: Arc<File>,
    /// The same file for each of those who sync it. Linux tells every open file once of a write that failed, and not
    /// every caller: two that share one would have one of them believe that all is well.
    pub for_syncs: [Arc<File>; SYNCS_MAX],
    /// Where the next frame goes.
    pub end: u32,
    /// What is before this is durable.
    pub synced: u32,
    /// What the page of `end` has before it.
    tail: Vec<u8>,
    pages: Pages,
    direct: Direct,
    ahead: Preallocation,
}

/// Room in the file before it is needed: a sync of a file that has grown also writes how long it is now, which is one
/// more write that the disk is waited for.
#[derive(Debug)]
struct Preallocation {
    /// How much at a time.
    step: u64,
    /// The file's length is this, or more than anybody asks for.
    length: u64,
    /// No room is made beyond this.
    limit: u64,
    zeros: Pages,
}

impl ActiveSegment {
    /// Begins a segment in a file that may have been used before. Nothing is synced.
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

    /// Writes a frame behind what is there; answers where its records begin.
    pub fn write(&mut self, frame: &mut Frame) -> io::Result<u32> {
        let at = self.end;
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

    /// Makes everything that was written durable.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.synced = self.end;
        Ok(())
    }

    /// Spoils the frame that was to begin here, so that it is not found after a crash. A help, no promise: the disk
    /// has just failed.
    pub fn overwrite_torn(&self, at: u32) {
        let _ = self.file.write_all_at(&ZEROS[..FRAME_HEADER_BYTES as usize], u64::from(at));
    }
}

impl Preallocation {
    /// Of so many bytes at once: to write zeros below them would cost more than they save.
    fn is_large(&self, bytes: u64) -> bool {
        bytes > self.step / 16
    }

    /// Lengthens the file if what is written next comes near its end.
    fn make_room(&mut self, file: &File, direct: &mut Direct, until: u64) {
        if until + self.step / 4 <= self.length {
            return;
        }
        // It is only faster with it. A disk that cannot do this will say so to the frame that follows.
        self.length = self.lengthen(file, direct, until).unwrap_or(u64::MAX);
    }

    /// Past the page cache: a mebibyte and its sync take 0.9 ms and 170 us of the processor this way, 1.8 ms and 750 us through it.
    /// There in pieces of a page: Linux keeps what is written at once together, and counts (and sometimes writes)
    /// all of it whenever a commit changes a part.
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
