//! The status of an endpoint's managed workers, published by its supervisor.

use std::sync::Arc;

use longshore_fleet::FleetFacts;
use longshore_model::{Millis, Placement, StartStage, WorkerId};

/// The status of an endpoint's managed workers, as far as the queue does not know it. Shown by `/health` and the
/// management API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetStatus {
    /// How many workers were started and have not sent their first take.
    pub initializing: u32,
    /// How many workers are not started yet because earlier ones crashed.
    pub unhealthy: u32,
    /// Why the last crashed worker exited or could not be started. `None` once a worker has served a job or was ready
    /// for 60 s.
    pub last_crash: Option<Arc<str>>,
    /// How many workers are not started because no GPUs are free for them.
    pub throttled: u32,
    /// Which GPUs are missing; `None` if no worker is throttled.
    pub throttled_because: Option<Arc<str>>,
    /// The managed workers, also those being started or stopped, by id.
    pub workers: Arc<[WorkerStatus]>,
    /// What the supervisor knows about why jobs wait. Its workers are those of `workers`, in the same order.
    pub facts: Arc<FleetFacts>,
}

/// The status of one managed worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    /// The id of the worker.
    pub id: WorkerId,
    /// The endpoint's version that the worker was started for.
    pub version: u32,
    /// The GPUs of the worker, and when and why it was started.
    pub placement: Placement,
    /// What the launcher reported last of a start in progress; `None` once the worker runs, and if it reported nothing.
    pub stage: Option<StartStage>,
    /// When the worker sent its first take. `None` before, and for a worker of an earlier server, of which it is unknown.
    pub ready_at: Option<Millis>,
    /// The number of jobs that the worker ended, as of the last pass.
    pub jobs_done: u64,
    /// Whether the worker is being drained or stopped.
    pub is_ending: bool,
}
