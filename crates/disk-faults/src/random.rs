//! Pseudo-random numbers from a seed.

/// A stream of pseudo-random numbers, with its state (splitmix64). The same seed returns the same numbers.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number, of 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }

    /// Returns `true` in half of the cases.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// Shuffles the items in place.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
