//! Whether a Docker daemon can run here, for the black-box tests of containers.

use super::tools::Tools;
use crate::workspace;

/// The variable by which the tests learn why no daemon can run; empty: one can.
pub const REASON: &str = "LONGSHORE_TESTS_WITHOUT_DOCKER";

/// Starts a daemon of the tests' own and ends it. Answers why none can run here; `None` if one can.
pub fn check(tools: &Tools) -> Result<Option<String>, String> {
    let mut probe = tools.python();
    probe.args(["-m", "harness.docker"]).current_dir(workspace::root().join("e2e"));
    let reason = workspace::output(&mut probe)?.trim().to_owned();
    if reason.is_empty() {
        return Ok(None);
    }
    println!("NOT RUN: the tests of workers in containers: {reason}");
    Ok(Some(reason))
}
