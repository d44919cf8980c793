//! The settings of an endpoint that its queue depends on.

/// The settings of an endpoint that its queue depends on. The engine computes them from the endpoint's resource and the
/// server's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// `workersMax` is 0: submits are accepted, takes get no jobs.
    pub paused: bool,
    /// The longest execution of a job whose submit names none, in ms; fits into 32 bits.
    pub execution_timeout_ms: u64,
    /// Retries of one job per submit or client retry. One more failed attempt ends the job.
    pub max_retries: u8,
    /// Whether an error that a handler reports is retried like a lost worker. If not, it ends the job.
    pub retry_handler_errors: bool,
    /// How long a terminal `/run` job is stored, in ms.
    pub retention_ms: u64,
    /// How long a terminal `/runsync` job is stored, in ms.
    pub sync_retention_ms: u64,
    /// The longest output of a `/run` job, in bytes. A longer one fails the job.
    pub output_bytes_max: u64,
    /// The longest output of a `/runsync` job, in bytes. A longer one fails the job.
    pub sync_output_bytes_max: u64,
    /// The largest number of queued jobs. At this number submits are refused, and requeues are not.
    pub jobs_max: u64,
    /// Worker lease, in ms: a worker without contact for this time is lost.
    pub lease_ms: u64,
    /// Stop grace, in ms: a worker that still runs a job this long after its stop signal is stuck.
    pub stop_grace_ms: u64,
}
