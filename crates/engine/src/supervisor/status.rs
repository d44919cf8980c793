//! What a supervisor knows beyond what the queue does.

use std::sync::Arc;

/// What a supervisor knows of its workers beyond what their queue does; for `/health`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetStatus {
    /// Started, but not asking for jobs yet.
    pub initializing: u32,
    /// Wanted, but held back because their command keeps crashing.
    pub unhealthy: u32,
    /// Why the last worker that crashed did, or could not be started. None once a worker has lived for a while.
    pub last_crash: Option<Arc<str>>,
}
