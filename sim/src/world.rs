//! The shared parts of a world.

use crate::clock::Clock;
use crate::faults::Faults;
use crate::network::Network;
use crate::recorder::Recorder;
use crate::scheduler::Scheduler;

/// The clock, faults, tasks, observations and network that all parties of a world share. Cheap to clone.
#[derive(Clone)]
pub struct World {
    /// Simulated time and the wall clock.
    pub clock: Clock,
    /// The faults and their rates.
    pub faults: Faults,
    /// The scheduler on which tasks are started.
    pub tasks: Scheduler,
    /// The recorder of observations.
    pub record: Recorder,
    /// The network to the server.
    pub network: Network,
}
