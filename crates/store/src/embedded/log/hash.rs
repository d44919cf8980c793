//! The checksum of frames and payloads.

use twox_hash::XxHash3_64;

/// 64 bits over the bytes, other ones for every seed.
pub(in crate::embedded) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}
