//! The simulated disk's store passes the suite of the stores when nothing goes wrong.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[macro_use]
#[path = "../../crates/store/tests/store/conformance/mod.rs"]
mod conformance;
#[path = "../../crates/store/tests/store/rows.rs"]
mod rows;

use longshore_sim::auditor::Auditor;
use longshore_sim::clock::Clock;
use longshore_sim::dice::Dice;
use longshore_sim::disk::Disk;
use longshore_sim::faults::Faults;
use longshore_sim::record::Record;
use longshore_sim::store::SimStore;
use longshore_sim::tasks::{Process, Tasks};

/// A store on an empty disk, and the process that has it open.
fn fresh() -> (SimStore, Process) {
    let mut dice = Dice::new(1);
    let faults = Faults::draw(&mut dice);
    faults.end();
    let disk = Disk::new(&mut dice, faults, Record::new(Clock::default(), Auditor::default(), false));
    let process = Tasks::new(&mut dice).process();
    (disk.store(&process), process)
}

store_conformance!(fresh());
