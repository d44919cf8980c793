//! Disks with read errors and damaged inputs: a read error fails no job, a damaged input only its own.

use longshore_sim::faults::Fault;
use longshore_sim::run;

/// Rates of read faults; all other rates come from the seed.
const RATES: &[(Fault, f64)] = &[
    (Fault::ReadFailed, 0.03),
    (Fault::DiskUnreadable, 0.003),
    (Fault::InputDamaged, 0.03),
    (Fault::OutputDamaged, 0.03),
    (Fault::ChunkDamaged, 0.03),
];
const STEPS: u64 = 10_000;
/// In the first one, other jobs are delivered while a job is deferred.
const SEEDS: [u64; 8] = [9032, 9106, 7007, 1, 3, 4, 5, 14];

#[test]
fn read_errors_fail_no_job_and_damage_only_its_own() {
    let mut struck = [0; RATES.len()];
    let mut checked = 0;
    for seed in SEEDS {
        let outcome = run::run_world_with(RATES, seed, STEPS, false);
        assert_eq!(outcome.violations, [], "seed {seed}");
        for ((fault, _), sum) in RATES.iter().zip(&mut struck) {
            *sum += outcome.faults.iter().find(|(kind, _)| kind == fault).map_or(0, |(_, count)| *count);
        }
        let damage = "a job fails for a damaged input only where its input is damaged";
        checked += outcome.checked.iter().find(|(name, _)| *name == damage).map_or(0, |(_, count)| *count);
    }
    assert!(struck.iter().all(|count| *count > 0), "never struck: {struck:?}");
    assert!(checked > 0, "no job failed for its damaged input");
}
