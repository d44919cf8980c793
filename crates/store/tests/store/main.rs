//! One suite that every store passes, and what only a store with a disk can get wrong.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
mod conformance;
mod rows;

mod embedded;
mod memory;
