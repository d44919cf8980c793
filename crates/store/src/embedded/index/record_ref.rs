//! The place of a record, in eight bytes.

use std::num::NonZeroU64;

/// Limit of the number of segments of a log: 64 TB at the default size.
pub(in super::super) const SLOTS_MAX: usize = 1 << 20;

/// The place of a record: the slot of its segment (20 bits), its offset in the segment (32 bits), and its rounded length
/// (12 bits: an exponent and 7 binary digits). Eight bytes, because a million jobs have two to three million records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RecordRef(NonZeroU64);

impl RecordRef {
    /// Returns the place of a record of `bytes` bytes. `None` for offset 0, which is in the segment's header, and for a
    /// slot that is not below [`SLOTS_MAX`].
    pub fn new(slot: usize, at: u32, bytes: u64) -> Option<Self> {
        NonZeroU64::new((slot as u64) << 44 | u64::from(at) << 12 | rounded(bytes))
            .filter(|_| at != 0 && slot < SLOTS_MAX)
            .map(Self)
    }

    /// Returns the slot of the segment.
    pub fn slot(self) -> usize {
        (self.0.get() >> 44) as usize
    }

    /// Returns the offset of the record's first byte in the segment.
    pub fn at(self) -> u32 {
        (self.0.get() >> 12) as u32
    }

    /// Returns the length in bytes, rounded down by at most 1/64, out-of-line payload included. At least 1.
    pub fn bytes(self) -> u64 {
        let rounded = self.0.get() & 0xfff;
        (rounded & 0x7f) << (rounded >> 7)
    }
}

/// Returns the upper seven binary digits of a length, below the number of digits that are cut off.
fn rounded(bytes: u64) -> u64 {
    let exponent = u64::from((u64::BITS - bytes.leading_zeros()).saturating_sub(7)).min(31);
    exponent << 7 | (bytes >> exponent).clamp(1, 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_slot_and_offset_and_rounds_the_length() {
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
