//! Load generators: roles with many concurrent connections on one thread.

mod closed_loop;
mod connection;
mod event_loop;
mod first_chunk;
mod listeners;
mod open_loop;
mod parked;
mod sink;
mod slots;
mod stream;
mod taker;
mod tally;
mod target;
#[cfg(test)]
mod tests;
mod timer;
mod times;
mod timestamp;
mod worker;

pub use closed_loop::{ClosedLoop, Span};
pub use event_loop::{ConnectionId, EventLoop, Role, ask};
pub use first_chunk::FirstChunk;
pub use listeners::Listeners;
pub use open_loop::OpenLoop;
pub use parked::Parked;
pub use sink::Sink;
pub use slots::{SlotProtocol, Slots};
pub use stream::{Reading, Yielding};
pub use taker::{Taken, Taker};
pub use tally::Tally;
pub use target::Target;
pub use times::Times;
pub use timestamp::stamp;
pub use worker::{Protocol, Worker};
