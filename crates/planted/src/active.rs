//! The planted mistake of each thread. A simulated world runs in one thread.

use core::cell::Cell;
use std::thread_local;

use crate::Bug;

thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants one mistake in this thread and removes any other; `None` removes it.
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether this mistake is planted in this thread.
pub fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}
