//! What the engine has in memory, for operators.

use std::sync::atomic::Ordering;

use crate::Engine;

/// The memory of a job without its payloads, in bytes: its row, and its places in the lists of the queue.
const JOB_BYTES: u64 = 170;

/// What the engine has in memory. Read without asking an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineMemory {
    /// Jobs in any state, after the last round of each endpoint.
    pub jobs: u64,
    /// The memory of these jobs without their payloads, in bytes: an estimate.
    pub job_bytes: u64,
    /// The memory of the payloads that were written last, in bytes.
    pub recent_bytes: usize,
    /// The most of it, in bytes.
    pub recent_bytes_max: usize,
}

impl Engine {
    /// What the engine has in memory now.
    pub fn memory(&self) -> EngineMemory {
        let jobs = self.endpoints().iter().map(|one| one.shared().known_jobs.load(Ordering::Relaxed)).sum();
        let (recent_bytes, recent_bytes_max) = self.inner.services.payload_cache.in_use();
        EngineMemory { jobs, job_bytes: jobs * JOB_BYTES, recent_bytes, recent_bytes_max }
    }

    /// The number of queues that are not loaded yet after the start.
    pub fn loading_queues(&self) -> usize {
        self.inner.loading.load(Ordering::Acquire)
    }
}
