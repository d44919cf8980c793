//! Simulates the whole server.
//!
//! The real queue, engine, fleet, webhooks, rate limits and HTTP routes run in one thread, with a clock, disk,
//! network and workers that one seed determines. An auditor sees only what clients, workers and receivers see, and
//! checks the promises.

pub mod auditor;
pub mod balancing;
pub mod blobs;
pub mod campaign;
pub mod clients;
pub mod clock;
pub mod cluster;
pub mod database;
pub mod disk;
pub mod endpoints;
pub mod events;
pub mod faults;
#[cfg(test)]
mod fixture;
pub mod host;
#[cfg(feature = "planted")]
pub mod hunt;
pub mod keys;
pub mod launcher;
pub mod network;
pub mod observation;
pub mod operator;
pub mod raw_http;
pub mod receivers;
pub mod recorder;
pub mod redeliverer;
pub mod rng;
pub mod run;
pub mod scheduler;
pub mod server;
pub mod settings;
pub mod store;
pub mod workers;
pub mod world;
