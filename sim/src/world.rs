//! What everybody in a world shares.

use crate::clock::Clock;
use crate::faults::Faults;
use crate::network::Network;
use crate::recorder::Recorder;
use crate::scheduler::Scheduler;

/// What everybody in a world shares. Cheap to clone.
#[derive(Clone)]
pub struct World {
    /// Time.
    pub clock: Clock,
    /// What goes wrong.
    pub faults: Faults,
    /// Where tasks are started.
    pub tasks: Scheduler,
    /// Where what is seen is kept.
    pub record: Recorder,
    /// The way to the server.
    pub network: Network,
}
