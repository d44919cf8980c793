//! The conformance suite of stores on a real PostgreSQL, and what only a database can get wrong.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../../store/tests/store/conformance/mod.rs"]
mod conformance;
#[path = "../../../store/tests/store/rows.rs"]
mod rows;

mod faults;
mod harness;
mod jobs;
mod logs;
mod migrations;
mod nodes;
mod plans;
mod start;

store_conformance!(harness::fresh_store().await);
