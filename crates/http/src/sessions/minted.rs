//! Random texts: values of cookies, and codes.

use longshore_engine::Engine;
use ring::digest::{SHA256, digest};

/// A random text of 256 bits, as 64 hexadecimal digits.
pub(crate) fn mint(engine: &Engine) -> String {
    let halves = [engine.entropy(), engine.entropy()];
    const_hex::encode(halves.map(u128::to_be_bytes).concat())
}

/// Lower-case hex of the SHA-256 of a text.
pub(crate) fn hash_of(text: &str) -> String {
    const_hex::encode(digest(&SHA256, text.as_bytes()))
}
