//! What the server was told in its configuration, and what the specification says where it was told nothing.

use bytes::Bytes;

/// One row of the table of rate limits.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Requests in any ten seconds.
    pub per_10_s: u64,
    /// Requests at once; 0: any number.
    pub concurrent: u64,
}

/// The table of rate limits.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// `POST /run`.
    pub run: Rate,
    /// `POST /runsync`.
    pub runsync: Rate,
    /// `/status` and `/status-sync`.
    pub status: Rate,
    /// `/stream`.
    pub stream: Rate,
    /// `/cancel` and `/retry`.
    pub cancel: Rate,
    /// `/purge-queue`.
    pub purge_queue: Rate,
    /// `/requests`.
    pub requests: Rate,
    /// What each running worker adds.
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

/// What the server was told in its configuration, and the defaults of an endpoint.
#[derive(Clone, Debug)]
pub struct Rules {
    /// None: switched off.
    pub rates: Option<Rates>,
    /// Whether queues are short enough to be full.
    pub may_be_full: bool,
    /// How long a worker's question for jobs is held.
    pub worker_hold_ms: u64,
    /// How often workers ping.
    pub ping_interval_ms: u64,
    /// How long a worker may take to let go of a job, and to end after SIGTERM.
    pub stop_grace_ms: u64,
    /// How long a worker that hangs may take to end after SIGTERM.
    pub kill_grace_ms: u64,
    /// Attempts for one webhook.
    pub webhook_attempts_max: u32,
    /// From one attempt to the next.
    pub webhook_gap_ms: u64,
    /// The longest body of a webhook call that need not leave anything out.
    pub webhook_body_bytes_max: usize,
    /// The longest output of a `/run` job.
    pub output_bytes_max: usize,
    /// The longest output of a `/runsync` job.
    pub sync_output_bytes_max: usize,
    /// The longest output of a chunk, which is at most 1 000 000 bytes as it is shown; longer ones are split.
    pub chunk_bytes_max: usize,
    /// Default of `policy.ttl`.
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
    /// A worker that was silent for so long is lost.
    pub(super) fn is_too_long(&self, is_sync: bool, output: Option<&Bytes>) -> bool {
        let most = if is_sync { self.sync_output_bytes_max } else { self.output_bytes_max };
        output.is_some_and(|output| output.len() > most)
    }

    pub(super) fn lease_ms(&self) -> u64 {
        3 * self.ping_interval_ms
    }

    /// So long after its end at the latest, nothing runs a job any more.
    pub(super) fn stopped_within_ms(&self) -> u64 {
        // The stop's grace, the pings that decide where other jobs are at stake, SIGTERM's grace, SIGKILL, and
        // room for slow packets and commits.
        self.lease_ms() + 2 * self.stop_grace_ms + self.kill_grace_ms + 2 * self.ping_interval_ms + 60_000
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            rates: Some(Rates::default()),
            may_be_full: false,
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
