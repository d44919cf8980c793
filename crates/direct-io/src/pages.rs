//! Page-aligned memory for direct reads and writes.

use bytes::Bytes;

/// The alignment in bytes of direct reads and writes, in the file and in memory.
pub const PAGE_BYTES: usize = 4096;

/// Memory for bytes that begin on a multiple of [`PAGE_BYTES`].
#[derive(Debug, Default)]
pub struct Pages {
    memory: Vec<u8>,
    start: usize,
}

impl Pages {
    /// Empties the pages, reserves memory for `bytes` bytes, and returns the buffer to append to. Append at most `bytes`
    /// bytes: a reallocation would lose the alignment.
    pub fn begin(&mut self, bytes: usize) -> &mut Vec<u8> {
        self.memory.clear();
        self.memory.reserve(bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES);
        self.start = self.memory.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        self.memory.resize(self.start, 0);
        &mut self.memory
    }

    /// Fills the last page with zeros. Returns the number of bytes before them.
    pub fn end(&mut self) -> usize {
        let bytes = self.bytes().len();
        self.fill(bytes);
        bytes
    }

    /// Extends with zeros, or truncates, to the end of the page that `bytes` bytes reach.
    pub fn fill(&mut self, bytes: usize) {
        self.memory.resize(self.start + bytes.next_multiple_of(PAGE_BYTES), 0);
    }

    /// Returns the appended bytes, including zeros that filled the last page.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    /// Returns the appended bytes, to be overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }

    /// Returns the first `bytes` bytes, or all if there are fewer, without a copy.
    #[must_use]
    pub fn into_bytes(self, bytes: usize) -> Bytes {
        let end = (self.start + bytes).min(self.memory.len());
        Bytes::from(self.memory).slice(self.start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_bytes_begin_on_a_page() {
        let mut pages = Pages::default();
        for bytes in [1_usize, 5000, 100, 1 << 20] {
            pages.begin(bytes).extend((0..bytes).map(|at| at as u8));
            assert_eq!(pages.end(), bytes);
            assert_eq!(pages.bytes().as_ptr().align_offset(PAGE_BYTES), 0);
            assert_eq!(pages.bytes().len(), bytes.next_multiple_of(PAGE_BYTES));
            assert!(pages.bytes()[..bytes].iter().enumerate().all(|(at, &byte)| byte == at as u8));
            assert!(pages.bytes()[bytes..].iter().all(|&byte| byte == 0));
        }
        let bytes = pages.into_bytes(3000);
        assert!(bytes.len() == 3000 && bytes.iter().enumerate().all(|(at, &byte)| byte == at as u8));
    }
}
