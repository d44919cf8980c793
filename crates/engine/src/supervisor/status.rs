//! What a supervisor knows beyond what the queue does.

use std::sync::Arc;

use longshore_model::{Placement, WorkerId};

/// What a supervisor knows of its workers beyond what their queue does; for `/health`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetStatus {
    /// Started, but not asking for jobs yet.
    pub initializing: u32,
    /// Wanted, but held back because their command keeps crashing.
    pub unhealthy: u32,
    /// Why the last worker that crashed did, or could not be started. None once a worker has lived for a while.
    pub last_crash: Option<Arc<str>>,
    /// Wanted, but no place was found for them.
    pub throttled: u32,
    /// Why not.
    pub throttled_because: Option<Arc<str>>,
    /// The workers that it answers for.
    pub workers: Arc<[WorkerStatus]>,
}

/// What a supervisor knows of one of its workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Its id.
    pub id: WorkerId,
    /// The endpoint's version that it was started for.
    pub version: u32,
    /// Where it runs, and since when.
    pub placement: Placement,
}
