//! Licences, bans, sources and advisories of the dependencies, by the rules of `deny.toml`.

use super::succeed;
use super::tools::Tools;
use crate::workspace;

/// Runs `cargo deny`. Answers what could not be checked, and why: the advisories, where their database is out of
/// reach.
pub fn check(tools: &Tools) -> Result<Option<String>, String> {
    // Two versions of a crate are a warning each, with the whole tree: too much to be read in every run.
    let quiet = ["--log-level", "error"];
    succeed(tools.cargo_deny().args(quiet).args(["check", "licenses", "bans", "sources"]))?;
    let mut fetch = tools.cargo_deny();
    if let Err(error) = workspace::output(fetch.current_dir(workspace::root()).args(["fetch", "db"])) {
        let reason = error.lines().next().unwrap_or_default();
        println!("NOT RUN: the database of advisories cannot be fetched: {reason}");
        return Ok(Some(format!("advisories of the dependencies: {reason}")));
    }
    succeed(tools.cargo_deny().args(quiet).args(["check", "--disable-fetch", "advisories"]))?;
    Ok(None)
}
