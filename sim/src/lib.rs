//! The whole server in a simulated world.
//!
//! The real queue, engine, fleet, webhook chore, rate limits and HTTP routes run in one thread, under a clock, a
//! disk, a network and workers that one seed decides. An auditor sees what clients, workers and receivers see,
//! and nothing else, and checks the promises.

pub mod auditor;
pub mod blobs;
pub mod clock;
pub mod dice;
pub mod disk;
pub mod faults;
pub mod host;
pub mod keys;
pub mod life;
pub mod many;
pub mod network;
#[cfg(feature = "planted")]
pub mod plants;
pub mod record;
pub mod seen;
pub mod server;
pub mod settings;
pub mod store;
pub mod tasks;
pub mod world;
