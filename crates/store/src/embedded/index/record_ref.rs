//! Where a record is, in eight bytes.

use std::num::NonZeroU64;

/// So many segments can there be at once: 64 TB of them.
pub(in super::super) const SLOTS_MAX: usize = 1 << 20;

/// The slot of its segment (20 bits), where in the segment it begins (32 bits), and about how long it is (12 bits: an
/// exponent and 7 digits). A million jobs have two or three million of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RecordRef(NonZeroU64);

impl RecordRef {
    /// Where a record of so many bytes is. `None` for the first byte of a segment, where none can be.
    pub fn new(slot: usize, at: u32, bytes: u64) -> Option<Self> {
        NonZeroU64::new((slot as u64) << 44 | u64::from(at) << 12 | rounded(bytes))
            .filter(|_| at != 0 && slot < SLOTS_MAX)
            .map(Self)
    }

    /// The slot of the segment.
    pub fn slot(self) -> usize {
        (self.0.get() >> 44) as usize
    }

    /// Where in the segment.
    pub fn at(self) -> u32 {
        (self.0.get() >> 12) as u32
    }

    /// About how long it is, with the payload beside it: the same for the same length.
    pub fn bytes(self) -> u64 {
        let rounded = self.0.get() & 0xfff;
        (rounded & 0x7f) << (rounded >> 7)
    }
}

/// The upper seven digits of a length, and how many digits come behind them.
fn rounded(bytes: u64) -> u64 {
    let behind = u64::from((u64::BITS - bytes.leading_zeros()).saturating_sub(7)).min(31);
    behind << 7 | (bytes >> behind).clamp(1, 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_what_it_says() {
        for (slot, at, bytes) in [(0, 1, 1), (SLOTS_MAX - 1, u32::MAX, 127), (77, 4096, 300), (1, 5, 1 << 30)]
        {
            let place = RecordRef::new(slot, at, bytes).unwrap();
            assert_eq!((place.slot(), place.at()), (slot, at));
            assert!(
                place.bytes() <= bytes && place.bytes() >= bytes - bytes / 60,
                "{bytes} as {}",
                place.bytes()
            );
        }
        assert_eq!(RecordRef::new(3, 0, 9), None);
        assert!(RecordRef::new(0, 9, 0).unwrap().bytes() > 0);
    }
}
