//! The process launcher with real child processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod adoption;
mod environment;
mod exits;
mod harness;
mod leftovers;
mod logs;
mod lost_shims;
mod orphans;
mod stops;
mod warm;
