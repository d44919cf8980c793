//! What can be said of a worker from outside.

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerPhase {
    /// Started, has not asked for a job yet.
    Initializing,
    /// Has asked for jobs and holds none.
    Idle,
    /// Holds at least one job.
    Running,
    /// Gets no new jobs and ends when its last one does.
    Draining,
}

/// How many workers are in which condition: the six fields of `/health`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Hold no job and ask for one.
    pub idle: u32,
    /// Started, not asking yet.
    pub initializing: u32,
    /// Could take a job at once: idle, not draining.
    pub ready: u32,
    /// Hold at least one job.
    pub running: u32,
    /// Wanted, but no place was found for them.
    pub throttled: u32,
    /// Keep crashing; the launcher waits before it tries again.
    pub unhealthy: u32,
}
