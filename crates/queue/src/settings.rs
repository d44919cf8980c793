//! What of an endpoint's record its queue goes by.

/// The part of an endpoint's record that its queue goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// `workersMax` is 0: jobs queue, nothing runs.
    pub paused: bool,
    /// The longest a job may run unless its policy says otherwise.
    pub execution_timeout_ms: u64,
    /// Automatic re-dispatches of one job.
    pub max_retries: u8,
    /// An error that a handler reports causes one.
    pub retry_handler_errors: bool,
    /// How long a finished `/run` job is kept.
    pub retention_ms: u64,
    /// How long a finished `/runsync` job is kept.
    pub sync_retention_ms: u64,
    /// The longest output of a `/run` job.
    pub output_bytes_max: u64,
    /// The longest output of a `/runsync` job.
    pub sync_output_bytes_max: u64,
    /// The most jobs in the queue; over it submits are refused.
    pub jobs_max: u64,
    /// Worker lease: a worker without contact for this time is lost, in milliseconds.
    pub lease_ms: u64,
    /// How long a worker may take to let go of a job that it was told to stop.
    pub stop_grace_ms: u64,
}
