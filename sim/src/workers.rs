//! Workers that speak the protocol as the official SDK does, and those who run them on machines of their own.

mod environment;
mod gossip;
mod habits;
mod handler;
mod job;
mod output;
mod outside;
mod posting;
mod sdk;
#[cfg(test)]
pub(crate) mod tests;

pub use gossip::Gossip;
pub use job::UNREADABLE;
pub use outside::start;
pub use sdk::{Ending, Worker};
