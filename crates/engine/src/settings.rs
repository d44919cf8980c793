//! The engine's settings. Data that the operator writes; the parts that do work come separately.

use longshore_model::{Endpoint, RetryOn};
use longshore_queue::QueueSettings;

/// What the operator can choose about the engine.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// How often workers ping, in milliseconds; three missed pings lose a worker.
    pub ping_interval_ms: u64,
    /// How long a worker may take to let go of a job that it was told to stop, where its endpoint does not say.
    pub stop_grace_ms: u64,
    /// The most jobs in one queue where the endpoint does not say.
    pub jobs_max: u64,
    /// The longest output of a `/run` job, in bytes.
    pub output_bytes_max: u64,
    /// The longest output of a `/runsync` job, in bytes.
    pub sync_output_bytes_max: u64,
    /// The most bytes of one job's stream.
    pub stream_bytes_max: u64,
    /// Payloads over this size go to files, in bytes.
    pub blob_bytes_min: usize,
    /// Memory for recently written payloads, in bytes.
    pub recent_bytes_max: usize,
    /// Memory for outputs and chunks on their way to clients and receivers of webhooks, in bytes.
    pub answer_bytes_max: usize,
    /// Memory for inputs on their way to workers, in bytes.
    pub input_bytes_max: usize,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            ping_interval_ms: 5_000,
            stop_grace_ms: 10_000,
            jobs_max: 5_000_000,
            output_bytes_max: 10_000_000,
            sync_output_bytes_max: 20_000_000,
            stream_bytes_max: 256_000_000,
            blob_bytes_min: 256 * 1024,
            recent_bytes_max: 16 << 20,
            answer_bytes_max: 128_000_000,
            input_bytes_max: 128_000_000,
        }
    }
}

impl EngineSettings {
    /// From the stop signal of a job to SIGTERM for its worker, in milliseconds, at this endpoint.
    pub(crate) fn stop_grace_of(&self, endpoint: &Endpoint) -> u64 {
        endpoint.stop_grace_ms.unwrap_or(self.stop_grace_ms)
    }

    /// What an endpoint's queue goes by.
    pub(crate) fn of_queue(&self, endpoint: &Endpoint) -> QueueSettings {
        QueueSettings {
            paused: endpoint.workers_max == 0,
            execution_timeout_ms: endpoint.execution_timeout_ms,
            max_retries: endpoint.max_retries,
            retry_handler_errors: endpoint.retry_on.contains(&RetryOn::HandlerError),
            retention_ms: endpoint.result_retention_ms,
            sync_retention_ms: endpoint.sync_result_retention_ms,
            output_bytes_max: self.output_bytes_max,
            sync_output_bytes_max: self.sync_output_bytes_max,
            jobs_max: endpoint.max_queue_length.unwrap_or(self.jobs_max),
            lease_ms: self.ping_interval_ms * 3,
            stop_grace_ms: self.stop_grace_of(endpoint),
        }
    }
}
