//! One suite that every store passes, and what only a store with a disk can get wrong.

#[macro_use]
mod conformance;
mod rows;

mod embedded;
mod memory;
