//! Maps by job key.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use longshore_model::JobKey;

/// What is known of jobs by their keys. These are numbers that this program gives out, one after the other, so that
/// nobody can choose some that collide: the hash need not be proof against that, and costs a tenth of the usual one.
pub(crate) type KeyMap<V> = HashMap<JobKey, V, BuildHasherDefault<KeyHasher>>;

/// Multiplies, and folds the upper half onto the lower one: numbers in a row are spread over all bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64((*byte).into());
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::BuildHasher as _;

    use longshore_model::EndpointNo;

    use super::*;

    /// A map looks for a place by the lower bits, and compares the upper seven before it compares keys.
    #[test]
    fn keys_in_a_row_are_spread() {
        let hashes: Vec<u64> = (1..5)
            .flat_map(|endpoint| (1..=4096).map(move |seq| JobKey { endpoint: EndpointNo(endpoint), seq }))
            .map(|key| BuildHasherDefault::<KeyHasher>::default().hash_one(key))
            .collect();
        let different = |hashes: &mut dyn Iterator<Item = u64>| hashes.collect::<BTreeSet<_>>().len();
        assert_eq!(different(&mut hashes.iter().copied()), hashes.len());
        // Of numbers drawn at random, 63 % of the places would be taken.
        let places = different(&mut hashes.iter().map(|hash| hash % hashes.len() as u64));
        assert!(places * 100 > hashes.len() * 60, "{places}");
        assert_eq!(different(&mut hashes.iter().map(|hash| hash >> 57)), 128);
    }
}
