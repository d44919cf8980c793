//! The format of a segment as it is documented, read and written without the store's own code.

use std::ops::Range;

use twox_hash::XxHash3_64;

const HEADER_BYTES: usize = 4_096;
const FRAME_HEADER_BYTES: usize = 24;

/// The bytes of a segment.
#[derive(Clone)]
pub struct Segment {
    pub bytes: Vec<u8>,
}

impl Segment {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The records of each frame that is whole but for its payloads.
    pub fn records(&self) -> Vec<Range<usize>> {
        let (mut frames, mut at) = (Vec::new(), HEADER_BYTES);
        while let Some(records) = self.frame_at(at) {
            at = records.end + self.u32_at(at + 12);
            frames.push(records);
        }
        frames
    }

    /// Where the last frame ends.
    pub fn end(&self) -> usize {
        self.records()
            .last()
            .map_or(HEADER_BYTES, |last| last.end + self.u32_at(last.start - FRAME_HEADER_BYTES + 12))
    }

    /// Makes the hash of the frame with these records right again.
    pub fn seal(&mut self, records: &Range<usize>) {
        let at = records.start - FRAME_HEADER_BYTES;
        let hash = self.hash_of(at, records.end);
        self.bytes[at..at + 8].copy_from_slice(&hash.to_le_bytes());
    }

    fn frame_at(&self, at: usize) -> Option<Range<usize>> {
        let hash =
            self.bytes.get(at..at + FRAME_HEADER_BYTES)?[..8].try_into().map(u64::from_le_bytes).ok()?;
        let first = at + FRAME_HEADER_BYTES;
        let records = first..first + self.u32_at(at + 8);
        let is_whole =
            !records.is_empty() && records.end <= self.bytes.len() && hash == self.hash_of(at, records.end);
        is_whole.then_some(records)
    }

    fn hash_of(&self, at: usize, end: usize) -> u64 {
        let salt = u64::from_le_bytes(self.bytes[24..32].try_into().unwrap());
        XxHash3_64::oneshot_with_seed(salt.wrapping_add(at as u64), &self.bytes[at + 8..end])
    }

    fn u32_at(&self, at: usize) -> usize {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap()) as usize
    }
}
