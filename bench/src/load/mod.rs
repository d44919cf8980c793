//! Load: roles that talk over many connections at once, all of them on one thread.

mod closed_loop;
mod dial;
mod first_chunk;
mod line;
mod listeners;
mod open_loop;
mod parked;
mod sink;
mod slots;
mod stamp;
mod stream;
mod taker;
mod tally;
#[cfg(test)]
mod tests;
mod timer;
mod times;
mod wire;
mod worker;

pub use closed_loop::{ClosedLoop, Span};
pub use dial::Dial;
pub use first_chunk::FirstChunk;
pub use listeners::Listeners;
pub use open_loop::OpenLoop;
pub use parked::Parked;
pub use sink::Sink;
pub use slots::{Manner, Slots};
pub use stamp::stamp;
pub use stream::{Reading, Yielding};
pub use taker::{Taken, Taker};
pub use tally::Tally;
pub use times::Times;
pub use wire::{LineId, Role, Wire, ask};
pub use worker::{Protocol, Worker};
