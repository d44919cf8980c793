//! Tests of whole engines through their public interface, on stores in memory that can fail and be slow.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod catalog;
mod faults;
mod fleet;
mod harness;
mod jobs;
mod keys;
mod launchers;
mod payload_budget;
mod queries;
mod reads;
mod restart;
mod secrets;
mod streams;
mod sweep;
mod versions;
mod webhooks;
