//! Hostile input, for the tests of the other crates alone.
//!
//! Three kinds find different defects: any bytes (what is not a document at all), spoiled documents (a valid one
//! with a few bytes changed, which gets far into a parser before it is wrong), and documents that are valid and
//! at the edge of what is (numbers that no type holds, half a character, a thousand brackets).

mod cases;
mod json;
mod mutate;

pub use cases::cases;
pub use json::{DEPTH, Names, json, number, object, string};
pub use mutate::{JSON_TOKENS, mutated};

use proptest::prelude::*;

/// Any bytes, most of them few.
pub fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..64),
        1 => prop::collection::vec(any::<u8>(), 64..2_000),
    ]
}

/// Any text, most of it short; control characters, and characters outside of the basic plane.
pub fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![6 => any::<char>(), 2 => proptest::char::range('\0', '\x7f')];
    prop::collection::vec(letter, 0..24).prop_map(String::from_iter)
}
