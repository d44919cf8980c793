//! Load: roles that talk over many connections at once, all of them on one thread.

mod closed_loop;
mod line;
mod tally;
mod times;
mod wire;
mod worker;

pub use closed_loop::{ClosedLoop, Span};
pub use tally::Tally;
pub use times::Times;
pub use wire::{Role, Wire, ask};
pub use worker::Worker;
