//! Worlds of several nodes on one database keep every promise, and repeat exactly.

use longshore_sim::campaign::{self, Campaign};
use longshore_sim::run::{self, WorldKind};

/// The first world that is run twice, and how many are.
const REPEATED: (u64, u64) = (1, 10);
/// Steps of a world that is run twice.
const REPEATED_STEPS: u64 = 5_000;
/// The first world of the campaign; smaller seeds are left for manual runs.
const FIRST_SEED: u64 = 20_000;
const WORLDS: u64 = 12;
const STEPS: u64 = 20_000;

#[test]
fn seeds_of_several_nodes_give_the_same_trace_every_time() {
    let (first, count) = REPEATED;
    for seed in first..first + count {
        let trace = || run::run_world_of(WorldKind::Cluster, &[], seed, REPEATED_STEPS, true).trace;
        let (one, other) = (trace(), trace());
        assert!(one.lines().count() > 100, "world {seed} is too quiet to show anything");
        let mut lines = one.lines().zip(other.lines());
        if let Some((one, other)) = lines.find(|(one, other)| one != other) {
            panic!("world {seed} went two ways:\n{one:.300}\n{other:.300}");
        }
        assert_eq!(one.len(), other.len(), "world {seed} ended early");
    }
}

#[test]
fn worlds_of_several_nodes_keep_every_promise() {
    let plan = Campaign {
        kind: WorldKind::Cluster,
        first_seed: FIRST_SEED,
        worlds: WORLDS,
        steps: STEPS,
        failures_max: 3,
    };
    let summary = campaign::run_campaign(&plan);
    let failed = summary.failed.iter().map(|outcome| {
        let violation = &outcome.violations[0];
        format!("seed {}: {}: {}\n", outcome.seed, violation.promise, violation.text)
    });
    assert_eq!(failed.collect::<String>(), "");
    assert!(summary.steps >= WORLDS * STEPS, "{} steps", summary.steps);
}
