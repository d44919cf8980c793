//! The simulated store passes the conformance suite of stores without faults.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../crates/store/tests/store/conformance/mod.rs"]
mod conformance;
#[path = "../../crates/store/tests/store/rows.rs"]
mod rows;

use longshore_sim::auditor::Auditor;
use longshore_sim::clock::Clock;
use longshore_sim::disk::Disk;
use longshore_sim::faults::Faults;
use longshore_sim::recorder::Recorder;
use longshore_sim::rng::Rng;
use longshore_sim::scheduler::{Process, Scheduler};
use longshore_sim::store::SimStore;

/// A store on an empty disk, and the process that has it open.
fn fresh() -> (SimStore, Process) {
    let mut rng = Rng::new(1);
    let faults = Faults::draw(&mut rng);
    faults.end();
    let disk = Disk::new(&mut rng, faults, Recorder::new(Clock::default(), Auditor::default(), false));
    let process = Scheduler::new(&mut rng).process();
    (disk.store(&process), process)
}

store_conformance!(fresh());
