//! The whole server in a simulated world.
//!
//! The real queue, engine, fleet, webhook chore, rate limits and HTTP routes run in one thread, under a clock, a
//! disk, a network and workers that one seed decides. An auditor sees what clients, workers and receivers see,
//! and nothing else, and checks the promises.

pub mod asking;
pub mod auditor;
pub mod blobs;
pub mod clients;
pub mod clock;
pub mod dice;
pub mod disk;
pub mod endpoints;
pub mod events;
pub mod faults;
pub mod host;
pub mod keys;
pub mod launcher;
pub mod life;
pub mod many;
pub mod network;
pub mod operator;
#[cfg(feature = "planted")]
pub mod plants;
pub mod receivers;
pub mod record;
pub mod repeater;
pub mod seen;
pub mod server;
pub mod settings;
#[cfg(test)]
mod stage;
pub mod store;
pub mod tasks;
pub mod workers;
pub mod world;
