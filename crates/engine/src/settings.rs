//! The settings of the engine: values that the operator chooses.

use longshore_model::{Endpoint, RetryOn};
use longshore_queue::QueueSettings;

/// The settings of the engine. An endpoint's own settings have priority where they exist.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Interval of a worker's pings, in ms. A worker lease is three times as long.
    pub ping_interval_ms: u64,
    /// Time from the stop signal of a job until its worker counts as stuck, in ms, for endpoints without `stopGraceMs`.
    pub stop_grace_ms: u64,
    /// Limit of the jobs in one queue, for endpoints without `maxQueueLength`.
    pub jobs_max: u64,
    /// Limit of the output of a `/run` job, in bytes; over it the job fails.
    pub output_bytes_max: u64,
    /// Limit of the output of a `/runsync` job, in bytes; over it the job fails.
    pub sync_output_bytes_max: u64,
    /// Limit of the chunks of one job, in bytes.
    pub stream_bytes_max: u64,
    /// Size over which a payload is stored as a blob, in bytes.
    pub blob_bytes_min: usize,
    /// Limit of the cache of recently written payloads, in bytes.
    pub recent_bytes_max: usize,
    /// Limit of the memory for outputs and chunks that are read for clients and webhook calls, in bytes.
    pub answer_bytes_max: usize,
    /// Limit of the memory for inputs that are read for workers, in bytes.
    pub input_bytes_max: usize,
    /// Memory for requests and their payloads until they are durable, in bytes. A request counts also when its client has
    /// disconnected. Over the limit, requests are rejected with [`EndpointError::Overloaded`](crate::EndpointError::Overloaded).
    pub request_bytes_max: usize,
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
            request_bytes_max: 340_000_000,
        }
    }
}

impl EngineSettings {
    /// Returns the stop grace of a job of this endpoint, in ms: after it, a stuck managed worker is replaced.
    pub(crate) fn stop_grace_of(&self, endpoint: &Endpoint) -> u64 {
        endpoint.stop_grace_ms.unwrap_or(self.stop_grace_ms)
    }

    /// Returns the settings of an endpoint's queue.
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
