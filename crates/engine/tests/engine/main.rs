//! The engine from outside: a real engine on stores in memory, one of them breakable.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod catalog;
mod faults;
mod fleet;
mod harness;
mod jobs;
mod keys;
mod launchers;
mod queries;
mod reads;
mod restart;
mod room;
mod secrets;
mod streams;
mod webhooks;
