//! The commands of the `longshore` program.
//!
//! This crate knows how a server is talked to, not how one is made: whoever builds the program hands in a
//! [`dev::ServerHost`] for the commands that bring their own server.

mod args;
pub mod dev;

pub use args::{Arguments, Command, DevArgs, LogFormat, OnOff, ServeArgs, ShimArgs};
