//! What everybody in a world shares.

use crate::clock::Clock;
use crate::faults::Faults;
use crate::network::Network;
use crate::record::Record;
use crate::tasks::Tasks;

/// What everybody in a world shares. Cheap to clone.
#[derive(Clone)]
pub struct World {
    /// Time.
    pub clock: Clock,
    /// What goes wrong.
    pub faults: Faults,
    /// Where tasks are started.
    pub tasks: Tasks,
    /// Where what is seen is kept.
    pub record: Record,
    /// The way to the server.
    pub network: Network,
}
