//! Mistakes that can be planted in the server, to see whether the simulator finds them.
//!
//! The code that could make such a mistake calls [`planted`]. Without the feature `planted` the function is a constant
//! `false`, so the mistakes are not compiled in; the server does not build with the feature. With it, `plant` chooses one
//! mistake for the calling thread.
#![no_std]

#[cfg(feature = "planted")]
extern crate std;

#[cfg(feature = "planted")]
mod active;
mod bug;

#[cfg(feature = "planted")]
pub use active::{plant, planted};
pub use bug::Bug;

/// Whether mistakes can be planted in this build: the feature `planted` is enabled.
pub const ARMED: bool = cfg!(feature = "planted");

/// Whether this mistake is planted: never without the feature `planted`.
#[cfg(not(feature = "planted"))]
pub const fn planted(_: Bug) -> bool {
    false
}
