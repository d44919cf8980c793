//! The simulated database of clusters, with the lanes of the real store, passes the conformance suite of stores without faults.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../crates/store/tests/store/conformance/mod.rs"]
mod conformance;
#[path = "../../crates/store/tests/store/rows.rs"]
mod rows;

use longshore_sim::auditor::Auditor;
use longshore_sim::clock::Clock;
use longshore_sim::cluster::partitions::Partitions;
use longshore_sim::database::{Database, SharedStore};
use longshore_sim::faults::Faults;
use longshore_sim::network::Network;
use longshore_sim::recorder::Recorder;
use longshore_sim::rng::Rng;
use longshore_sim::scheduler::{Process, Scheduler};
use longshore_sim::world::World;

/// The store of the owner of an empty database, the database, and the process of the owner.
fn fresh() -> (SharedStore, (Database, Process)) {
    let mut rng = Rng::new(1);
    let faults = Faults::draw(&mut rng);
    faults.end();
    let clock = Clock::default();
    let record = Recorder::new(clock.clone(), Auditor::default(), false);
    let network = Network::new(&mut rng, faults.clone(), record.clone());
    let tasks = Scheduler::new(&mut rng);
    let world = World { clock, faults, tasks, record, network };
    let database = Database::new(&world, &mut rng, Partitions::default());
    let (node, epoch) = database.make_owner();
    let process = world.tasks.process();
    (SharedStore::open(database.of_node(0), node, epoch, &process), (database, process))
}

store_conformance!(fresh());
