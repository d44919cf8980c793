//! One endpoint's queue.
#![no_std]

extern crate alloc;

mod command;
mod effects;

pub use command::{Command, Settings, Submit, Take, Verdict};
pub use effects::{Change, Effects, Refusal, Reply, Signal};
