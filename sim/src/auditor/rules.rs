//! The server's configuration, with the specification's defaults.

use bytes::Bytes;

/// One row of the table of rate limits.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Requests in any 10 s.
    pub per_10_s: u64,
    /// Concurrent requests; 0 for no limit.
    pub concurrent: u64,
}

/// The table of rate limits.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Limit of `POST /run`.
    pub run: Rate,
    /// Limit of `POST /runsync`.
    pub runsync: Rate,
    /// Limit of `/status` and `/status-sync`.
    pub status: Rate,
    /// Limit of the `/stream` route.
    pub stream: Rate,
    /// Limit of `/cancel` and `/retry`.
    pub cancel: Rate,
    /// Limit of the `/purge-queue` route.
    pub purge_queue: Rate,
    /// Limit of the `/requests` route.
    pub requests: Rate,
    /// Requests that each running worker adds to the limit.
    pub requests_per_worker: u64,
}

impl Default for Rates {
    fn default() -> Self {
        let rate = |per_10_s, concurrent| Rate { per_10_s, concurrent };
        Self {
            run: rate(1_000, 200),
            runsync: rate(2_000, 400),
            status: rate(2_000, 400),
            stream: rate(2_000, 400),
            cancel: rate(100, 20),
            purge_queue: rate(2, 0),
            requests: rate(10, 2),
            requests_per_worker: 100,
        }
    }
}

/// The server's configuration, and the defaults of an endpoint.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Rate limits; `None` if they are disabled.
    pub rates: Option<Rates>,
    /// Whether a request may wait for the node that decides, which counts it when it gets it.
    pub requests_wait_for_owner: bool,
    /// Whether queues may be full.
    pub may_be_full: bool,
    /// How long before a power cut a change of an endpoint with buffered durability can be lost, in ms.
    pub buffered_loss_ms: u64,
    /// How long a take is held, in ms.
    pub worker_hold_ms: u64,
    /// Interval of workers' pings, in ms.
    pub ping_interval_ms: u64,
    /// How long a worker may take to stop a job, and to end after SIGTERM, in ms.
    pub stop_grace_ms: u64,
    /// How long a hung worker may take to end after SIGTERM, in ms.
    pub kill_grace_ms: u64,
    /// Attempts of one webhook.
    pub webhook_attempts_max: u32,
    /// Shortest time between two attempts, in ms.
    pub webhook_gap_ms: u64,
    /// Bytes of a webhook call's body up to which it omits nothing.
    pub webhook_body_bytes_max: usize,
    /// Longest output of a `/run` job, in bytes.
    pub output_bytes_max: usize,
    /// Longest output of a `/runsync` job, in bytes.
    pub sync_output_bytes_max: usize,
    /// Longest output of a chunk, in bytes; longer ones are split. A shown chunk has at most 1 000 000 bytes.
    pub chunk_bytes_max: usize,
    /// Default of `policy.ttl`, in ms.
    pub ttl_ms: u64,
    /// Default of an endpoint's `executionTimeoutMs`.
    pub execution_timeout_ms: u64,
    /// Default of an endpoint's `maxRetries`.
    pub max_retries: u64,
    /// Default of an endpoint's `resultRetentionMs`.
    pub retention_ms: u64,
    /// Default of an endpoint's `syncResultRetentionMs`.
    pub sync_retention_ms: u64,
}

impl Rules {
    /// Whether an output exceeds its limit.
    pub(super) fn is_too_long(&self, is_sync: bool, output: Option<&Bytes>) -> bool {
        let most = if is_sync { self.sync_output_bytes_max } else { self.output_bytes_max };
        output.is_some_and(|output| output.len() > most)
    }

    pub(super) fn lease_ms(&self) -> u64 {
        3 * self.ping_interval_ms
    }

    /// Longest time after a job's end until its handler has stopped, in ms.
    pub(super) fn stopped_within_ms(&self) -> u64 {
        // The lease, the stop grace, pings that protect the worker's other jobs, the grace after SIGTERM, SIGKILL,
        // and slack for slow packets and commits.
        self.lease_ms() + 2 * self.stop_grace_ms + self.kill_grace_ms + 2 * self.ping_interval_ms + 60_000
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            rates: Some(Rates::default()),
            requests_wait_for_owner: false,
            may_be_full: false,
            buffered_loss_ms: 100,
            worker_hold_ms: 20_000,
            ping_interval_ms: 5_000,
            stop_grace_ms: 10_000,
            kill_grace_ms: 5_000,
            webhook_attempts_max: 3,
            webhook_gap_ms: 10_000,
            webhook_body_bytes_max: 10_000_000,
            output_bytes_max: 10_000_000,
            sync_output_bytes_max: 20_000_000,
            chunk_bytes_max: 999_989,
            ttl_ms: 86_400_000,
            execution_timeout_ms: 600_000,
            max_retries: 2,
            retention_ms: 1_800_000,
            sync_retention_ms: 60_000,
        }
    }
}
