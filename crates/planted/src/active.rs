//! Where mistakes are planted: one per thread, for a simulated world runs in one thread.

use core::cell::Cell;
use std::thread_local;

use crate::Bug;

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// From now on this thread makes this mistake, and no other.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this mistake is made.
pub fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}
