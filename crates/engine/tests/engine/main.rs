//! The engine from outside: a real engine on stores in memory, one of them breakable.

mod catalog;
mod faults;
mod fleet;
mod ground;
mod jobs;
mod restart;
mod streams;
