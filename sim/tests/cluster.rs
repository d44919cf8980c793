//! Worlds of several nodes on one database repeat exactly.

use longshore_sim::run::{self, WorldKind};

/// The world that is run twice.
const REPEATED: (u64, u64) = (1, 10_000);
#[test]
fn a_seed_of_several_nodes_gives_the_same_trace_every_time() {
    let (seed, steps) = REPEATED;
    let trace = || run::run_world_of(WorldKind::Cluster, &[], seed, steps, true).trace;
    let (first, second) = (trace(), trace());
    assert!(first.lines().count() > 100, "world {seed} is too quiet to show anything");
    let mut lines = first.lines().zip(second.lines());
    if let Some((one, other)) = lines.find(|(one, other)| one != other) {
        panic!("world {seed} went two ways:\n{one:.300}\n{other:.300}");
    }
}
