//! The checksum of frames and payloads.

use twox_hash::XxHash3_64;

/// Returns the XXH3 64 hash of the bytes with this seed.
pub(in crate::embedded) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}
