//! The phases of a worker, and the numbers of workers in them.

/// The phase of a worker, as its queue sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerPhase {
    /// The worker has sent no take yet.
    Initializing,
    /// The worker has sent a take and runs no job.
    Idle,
    /// The worker runs at least one job.
    Running,
    /// The worker gets no new jobs, and exits after its last job.
    Draining,
}

/// The numbers of workers by condition: the six fields of `/health`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Workers that run no job and send takes.
    pub idle: u32,
    /// Workers that have sent no take yet.
    pub initializing: u32,
    /// Workers that can take a job immediately: idle and not draining.
    pub ready: u32,
    /// Workers that run at least one job.
    pub running: u32,
    /// Wanted workers for which no GPUs are free.
    pub throttled: u32,
    /// Wanted workers that are not started yet because earlier ones crashed.
    pub unhealthy: u32,
}
