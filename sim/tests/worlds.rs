//! The promises hold in a million steps of simulated worlds, and worlds repeat exactly.

use std::process::Command;

use longshore_sim::campaign::{self, Campaign};
use longshore_sim::run::{self, WorldKind};

/// Steps of all worlds together.
const STEPS_MIN: u64 = 1_000_000;
/// Seed of the first world; smaller seeds are left for manual runs.
const FIRST_SEED: u64 = 10_000;
/// Seeds of the worlds that are run twice, and their steps.
const REPEATED: [(u64, u64); 3] = [(1, 10_000), (2, 10_000), (3, 10_000)];

#[test]
fn a_million_steps_keep_every_promise() {
    let plan = Campaign {
        kind: WorldKind::Server,
        first_seed: FIRST_SEED,
        worlds: STEPS_MIN.div_ceil(run::STEPS),
        steps: run::STEPS,
        failures_max: 3,
    };
    let summary = campaign::run_campaign(&plan);
    let failed = summary.failed.iter().map(|outcome| {
        let violation = &outcome.violations[0];
        format!("seed {}: {}: {}\n", outcome.seed, violation.promise, violation.text)
    });
    assert_eq!(failed.collect::<String>(), "");
    assert!(summary.steps >= STEPS_MIN, "{} steps", summary.steps);
    let idle: Vec<_> = summary.checked.iter().filter(|(_, count)| **count == 0).collect();
    assert!(idle.is_empty(), "never checked: {idle:?}");
}

#[test]
fn a_seed_gives_the_same_trace_every_time() {
    for (seed, steps) in REPEATED {
        let first = run::run_world(seed, steps, true).trace;
        assert!(first.lines().count() > 100, "world {seed} is too quiet to show anything");
        assert_same(&first, &run::run_world(seed, steps, true).trace, seed);
        let again = Command::new(env!("CARGO_BIN_EXE_longshore-sim"))
            .args(["--trace", "--seed", &seed.to_string(), "--steps", &steps.to_string()])
            .output()
            .expect("the simulator runs");
        let again = String::from_utf8(again.stdout).expect("a trace is text");
        // The summary follows the trace.
        assert_same(&first, &again[..first.len().min(again.len())], seed);
    }
}

fn assert_same(one: &str, other: &str, seed: u64) {
    let mut lines = one.lines().zip(other.lines());
    if let Some((one, other)) = lines.find(|(one, other)| one != other) {
        panic!("world {seed} went two ways:\n{one:.300}\n{other:.300}");
    }
    assert_eq!(one.len(), other.len(), "world {seed} ended early");
}
