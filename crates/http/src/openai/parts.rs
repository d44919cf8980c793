//! Joins outputs that were split into several chunks.

use bytes::Bytes;
use longshore_engine::Chunk;

/// The parts of an output that have arrived.
#[derive(Debug, Default)]
pub(super) struct Parts {
    text: Vec<u8>,
    has_part: bool,
}

impl Parts {
    /// Adds a chunk. Returns the output if the chunk completes it.
    pub(super) fn push(&mut self, chunk: Chunk) -> Option<Bytes> {
        let Chunk { output, seam, .. } = chunk;
        if !self.has_part && !seam.goes_on {
            return Some(output);
        }
        let bytes = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let end = output.len().saturating_sub(bytes(seam.tail));
        let own = output.get(bytes(seam.head)..end).unwrap_or_default();
        if seam.after_comma {
            self.text.push(b',');
        }
        self.text.extend_from_slice(own);
        self.has_part = seam.goes_on;
        (!seam.goes_on).then(|| Bytes::from(std::mem::take(&mut self.text)))
    }

    /// Drops the parts of an incomplete output.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use longshore_engine::Seam;

    use super::*;

    fn part(output: &'static str, goes_on: bool, after_comma: bool, head: u32, tail: u32) -> Chunk {
        Chunk {
            seam: Seam { goes_on, after_comma, head, tail },
            ..Chunk::from(Bytes::from_static(output.as_bytes()))
        }
    }

    #[test]
    fn parts_are_put_together_and_whole_chunks_are_left_alone() {
        let mut parts = Parts::default();
        let whole = Bytes::from_static(b"[1]");
        assert_eq!(
            parts.push(Chunk::from(whole.clone())).map(|output| output.as_ptr()),
            Some(whole.as_ptr())
        );
        assert_eq!(parts.push(part(r#"{"a":[1,"x"]}"#, true, false, 0, 3)), None);
        assert_eq!(parts.push(part(r#"{"a":["y"]}"#, true, false, 7, 2)), None);
        assert_eq!(parts.push(part(r#"{"a":[2]}"#, false, true, 6, 0)).unwrap(), r#"{"a":[1,"xy",2]}"#);
        assert_eq!(parts.push(part("2", false, false, 0, 0)).unwrap(), "2");
    }

    #[test]
    fn parts_with_impossible_places_are_survived() {
        let mut parts = Parts::default();
        assert_eq!(parts.push(part("1", true, true, u32::MAX, u32::MAX)), None);
        assert_eq!(parts.push(part("2", true, false, 0, 9)), None);
        parts.clear();
        assert_eq!(parts.push(part("[]", false, false, 2, 0)).unwrap(), "[]");
    }
}
