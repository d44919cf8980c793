//! Mistakes that can be planted in the server, to see whether the simulator finds them.
//!
//! A place where such a mistake could be made asks [`planted`]. Without the feature of that name, which the
//! server refuses to be built with, the answer is a constant `false` and nothing of the mistake is compiled in.
//! With it, `plant` chooses one mistake for the calling thread; worlds on other threads have their own.
#![no_std]

#[cfg(feature = "planted")]
extern crate std;

#[cfg(feature = "planted")]
mod active;
mod bug;

#[cfg(feature = "planted")]
pub use active::{plant, planted};
pub use bug::Bug;

/// Whether mistakes can be planted in this build.
pub const ARMED: bool = cfg!(feature = "planted");

/// Whether this mistake is made.
#[cfg(not(feature = "planted"))]
pub const fn planted(_: Bug) -> bool {
    false
}
