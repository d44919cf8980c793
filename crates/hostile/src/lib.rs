//! Hostile input for the property tests of the other crates.
//!
//! Three kinds of input find different defects: random bytes; mutated documents, which are valid up to a changed byte deep
//! inside; and valid documents with extreme content, such as numbers out of range, half a character or a thousand brackets.
//! [`job_row()`] does the same for rows of jobs.

mod cases;
mod job_row;
mod json;
mod mutate;

pub use cases::cases;
pub use job_row::{extreme_u64, job_row};
pub use json::{DEPTH, Names, json, number, object, string};
pub use mutate::{JSON_TOKENS, mutated};

use proptest::prelude::*;

/// Generates random bytes: fewer than 64 in 8 of 9 cases, at most 1 999.
pub fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..64),
        1 => prop::collection::vec(any::<u8>(), 64..2_000),
    ]
}

/// Generates text of at most 23 characters, with control characters and characters outside of the basic plane.
pub fn text() -> impl Strategy<Value = String> {
    let letter = prop_oneof![6 => any::<char>(), 2 => proptest::char::range('\0', '\x7f')];
    prop::collection::vec(letter, 0..24).prop_map(String::from_iter)
}
