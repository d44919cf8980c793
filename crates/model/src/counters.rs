//! The counters of an endpoint, which are never reset.

/// Cumulative counts of an endpoint's jobs, as `/health` shows them. They survive restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Jobs that a worker completed.
    pub completed: u64,
    /// Jobs that failed or timed out.
    pub failed: u64,
    /// Automatic retries and client retries.
    pub retried: u64,
    /// Jobs that were cancelled or purged.
    pub cancelled: u64,
    /// No job has a sequence number above this one. Reserved in blocks, and durable so that the number of a deleted job
    /// is not assigned again.
    pub reserved_seq: u64,
    /// Queued jobs that entered the queue at or before this time are purged; 0 means none.
    pub purged_until: crate::Millis,
}
