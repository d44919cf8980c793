//! Workers that speak the protocol of the official SDK, and owners of external workers.

mod environment;
mod external;
mod foreign_jobs;
mod handler;
mod job;
mod output;
mod profile;
mod reports;
mod sdk;
#[cfg(test)]
pub(crate) mod tests;

pub use external::start;
pub use foreign_jobs::ForeignJobs;
pub use job::UNREADABLE;
pub use sdk::{Ending, Worker};
