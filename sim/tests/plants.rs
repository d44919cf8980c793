//! Every planted mistake is found within its budget of worlds.
#![cfg(feature = "planted")]

use longshore_sim::hunt;

#[test]
fn every_planted_mistake_is_found() {
    let hunts = hunt::hunt_all(hunt::STEPS, |_| {});
    let missed: Vec<_> = hunts.iter().filter(|hunt| hunt.found.is_none()).collect();
    assert!(missed.is_empty(), "not found: {missed:#?}");
}
