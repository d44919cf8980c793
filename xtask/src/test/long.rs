//! The long form of the tests: more kills, cuts and examples than an ordinary run has time for.

use std::process::Command;

/// The variables that make a test run longer, each with the value of a long run. A variable that is set already stays
/// as it is. CONTRIBUTING.md and `e2e/README.md` say what each of them means.
const VARIABLES: &[(&str, &str)] = &[
    ("LONGSHORE_KILLS", "100"),
    ("LONGSHORE_NODE_KILLS", "100"),
    ("LONGSHORE_NODE_PAUSES", "30"),
    ("LONGSHORE_NODE_PAUSE_S", "10"),
    ("LONGSHORE_DATABASE_RESTARTS", "10"),
    ("LONGSHORE_NODE_ROLLS", "3"),
    ("LONGSHORE_CUTS", "10000"),
    ("LONGSHORE_WEBHOOKS", "10000"),
    ("LONGSHORE_PARKED", "9000"),
    ("LONGSHORE_OPENAPI_EXAMPLES", "100"),
    ("LONGSHORE_POWER_CUT_BATCHES", "120"),
    ("LONGSHORE_DAMAGE_STEP", "1"),
    ("LONGSHORE_LB_BYTES", "1073741824"),
    ("LONGSHORE_LB_IDLE", "10000"),
    ("LONGSHORE_LB_REQUESTS", "100000"),
    ("LONGSHORE_UNREAD_S", "900"),
    ("LONGSHORE_SDK_VERSIONS", "all"),
    ("LONGSHORE_PAGES", "all"),
    ("LONGSHORE_LISTED_JOBS", "100000"),
    ("LONGSHORE_LISTED_ENDPOINTS", "1000"),
    ("LONGSHORE_LISTED_WORKERS", "300"),
    ("LONGSHORE_LISTED_CHUNKS", "20000"),
    ("LONGSHORE_SOAK_S", "600"),
    ("LONGSHORE_DAEMON_KILLS", "on"),
    ("PROPTEST_CASES", "2000"),
];

/// The worlds of a long run of the simulator: together more than 10⁸ steps.
const WORLDS: &[&str] = &["--worlds", "1020", "--seed", "100000"];
/// The worlds of several nodes of a long run.
const CLUSTER_WORLDS: &[&str] = &["--cluster", "--worlds", "400", "--seed", "200000"];

/// Sets the variables of a long run for `command`.
pub fn lengthen(command: &mut Command) {
    for (name, value) in VARIABLES {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
}

/// The arguments with which cargo runs the simulator through the worlds of a long run, every check included: first those of one
/// server, then those of several nodes.
pub fn worlds() -> [Vec<&'static str>; 2] {
    [WORLDS, CLUSTER_WORLDS].map(|worlds| {
        let run = ["run", "--profile", "sim", "--package", "longshore-sim", "--"];
        [&run, worlds].concat()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_sets_what_is_not_set() {
        let mut command = Command::new("true");
        lengthen(&mut command);
        let set: Vec<_> = command.get_envs().filter_map(|(name, _)| name.to_str()).collect();
        let expected = VARIABLES.iter().filter(|(name, _)| std::env::var_os(name).is_none());
        assert_eq!(set.len(), expected.count());
    }
}
