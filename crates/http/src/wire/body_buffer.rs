//! The bytes of a body that arrives in pieces, in little more memory than the bytes take.

use bytes::{Bytes, BytesMut};

/// The capacity, in bytes, from which a buffer that is full is kept as it is, and another is begun. A buffer that
/// doubles instead is copied each time: a body of 64 MB took 100 MB and more.
const BLOCK_BYTES: usize = 1024 * 1024;

/// A body under construction.
#[derive(Debug)]
pub(crate) struct BodyBuffer {
    /// Buffers of [`BLOCK_BYTES`] or more that are full, in order.
    full: Vec<BytesMut>,
    full_bytes: usize,
    /// The buffer that is being filled.
    last: BytesMut,
}

impl BodyBuffer {
    /// An empty body, with capacity for `bytes`. A body that is not longer is never moved.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { full: Vec::new(), full_bytes: 0, last: BytesMut::with_capacity(bytes) }
    }

    /// The length of the body so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.full_bytes + self.last.len()
    }

    /// Appends `data` to the bytes read so far.
    pub(crate) fn extend_from_slice(&mut self, data: &[u8]) {
        let capacity = self.last.capacity();
        let (fits, rest) = data.split_at(data.len().min(capacity - self.last.len()));
        if rest.is_empty() || capacity < BLOCK_BYTES {
            self.last.extend_from_slice(data);
            return;
        }
        self.last.extend_from_slice(fits);
        let next = BytesMut::with_capacity(BLOCK_BYTES.max(rest.len()));
        let full = std::mem::replace(&mut self.last, next);
        self.full_bytes += full.len();
        self.full.push(full);
        self.last.extend_from_slice(rest);
    }

    /// The whole body. Bytes that lie in several buffers are copied, and each buffer is freed behind the copy.
    pub(crate) fn freeze(self) -> Bytes {
        if self.full.is_empty() {
            return self.last.freeze();
        }
        let mut whole = BytesMut::with_capacity(self.len());
        for buffer in self.full.into_iter().chain([self.last]) {
            whole.extend_from_slice(&buffer);
        }
        whole.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of all the buffers.
    fn capacity(buffer: &BodyBuffer) -> usize {
        buffer.full.iter().chain([&buffer.last]).map(BytesMut::capacity).sum()
    }

    fn piece(number: usize, bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (number * 31 + at) as u8).collect()
    }

    #[test]
    fn a_long_body_takes_little_more_memory_than_its_bytes() {
        for piece_bytes in [65_000, 700_000, 3_000_000] {
            let mut buffer = BodyBuffer::with_capacity(piece_bytes);
            let mut sent = Vec::new();
            for number in 0..9_000_000 / piece_bytes {
                let piece = piece(number, piece_bytes);
                buffer.extend_from_slice(&piece);
                sent.extend_from_slice(&piece);
                assert_eq!(buffer.len(), sent.len());
                let spare = capacity(&buffer) - buffer.len();
                assert!(spare <= 2 * BLOCK_BYTES, "{spare} bytes to spare of {}", sent.len());
            }
            let whole = buffer.freeze();
            assert!(whole == sent);
        }
    }

    #[test]
    fn a_body_of_the_announced_length_is_not_moved() {
        let mut buffer = BodyBuffer::with_capacity(5_000_000);
        let begin = buffer.last.as_ptr();
        for number in 0..5 {
            buffer.extend_from_slice(&piece(number, 1_000_000));
        }
        let whole = buffer.freeze();
        assert_eq!((whole.as_ptr(), whole.len()), (begin, 5_000_000));
    }
}
