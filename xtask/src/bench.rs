//! Builds the server and the bench for release, and measures one with the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::test::tools::Tools;
use crate::test::{Programs, succeed};
use crate::workspace::{self, Metadata};

/// Options after which nothing is measured, so that nothing needs to be built for it.
const ASKING: [&str; 4] = ["--help", "-h", "--list", "--version"];

/// What is compared with is installed first; the bench wants to know where.
const PEERS: &str = "--peers";

/// The Python that runs workers of the official SDK.
const PYTHON: &str = "--python";

/// The Python with heavy packages, and the scenario that needs it.
const HEAVY_PYTHON: &str = "--heavy-python";
const COLD_START: &str = "cold-start";

/// The scenario beside proxies of Debian.
const LB: &str = "lb";

/// The scenario in a browser.
const CONSOLE: &str = "console";

/// Runs the bench with these options.
pub fn run(options: &[&str]) -> Result<(), String> {
    let target = Metadata::read()?.target_directory;
    let is_given = |name: &str| options.iter().any(|option| option.split('=').next() == Some(name));
    let measures = !options.iter().any(|option| ASKING.contains(option));
    let needs_server = measures && !is_given("--server");
    let mut build = workspace::cargo();
    build.args(["build", "--release", "--package", "longshore-bench"]);
    if needs_server {
        build.args(["--package", "longshore-server", "--bin", "longshore", "--bin", "longshore-bench"]);
    }
    let uses_database = options.iter().any(|option| option.split('=').next_back() == Some("postgres"));
    if measures && uses_database {
        build.args(["--package", "longshore-store-load", "--bin", "longshore-store-load"]);
    }
    succeed(&mut build)?;
    let mut bench = Command::new(target.join("release/longshore-bench"));
    if needs_server {
        bench.arg("--server").arg(target.join("release/longshore"));
    }
    if measures && uses_database {
        bench.arg("--store-load").arg(target.join("release/longshore-store-load"));
    }
    if measures && !is_given(PYTHON) {
        bench.arg(PYTHON).arg(Tools::ensure_python()?);
    }
    let runs_all = !is_given("--only");
    if measures
        && !is_given(HEAVY_PYTHON)
        && (runs_all || options.iter().any(|only| only.contains(COLD_START)))
    {
        bench.arg(HEAVY_PYTHON).arg(Tools::ensure_heavy_python()?);
    }
    let runs = |scenario: &str| {
        runs_all || options.iter().any(|only| only.split(['=', ',']).any(|name| name == scenario))
    };
    if measures && runs(LB) {
        Tools::ensure_proxies()?;
    }
    if measures && runs(CONSOLE) {
        Tools::ensure_browser()?;
    }
    if options.contains(&PEERS) {
        let folder = target.join("peers");
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Tools::ensure_peers(&folder)?;
        bench.arg(PEERS).arg(folder);
    }
    if !is_given("--data") {
        bench.arg("--data").arg::<PathBuf>(target.join("bench-data"));
    }
    succeed(bench.args(options.iter().filter(|option| **option != PEERS)))
}

/// Sees that every scenario still runs against this server and that nothing is missing from the results. Says nothing
/// about speed: neither program is built for it.
pub fn smoke(programs: &Programs) -> Result<(), String> {
    let folder = Metadata::read()?.target_directory.join("bench-smoke");
    Tools::ensure_proxies()?;
    Tools::ensure_browser()?;
    // Left over from the run before.
    let _ = fs::remove_dir_all(&folder);
    let mut bench = Command::new(&programs.bench);
    bench.args(["--quick", "--reps", "2", "--server"]).arg(&programs.server);
    bench.arg(PYTHON).arg(Tools::ensure_python()?);
    bench.arg("--data").arg(folder.join("data")).arg("--results").arg(folder.join("results"));
    // Its figures would only mislead.
    succeed(bench.stdout(Stdio::null()))?;
    let entries = fs::read_dir(folder.join("results")).map_err(|error| format!("no results: {error}"))?;
    let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let of_kind = |kind: &str| paths.iter().find(|path| path.extension().is_some_and(|found| found == kind));
    of_kind("svg").ok_or("the bench drew no picture")?;
    let json = fs::read_to_string(of_kind("json").ok_or("the bench wrote no results")?);
    check(&json.map_err(|error| format!("cannot read the results: {error}"))?)
}

/// What must be in the results.
#[derive(Deserialize)]
struct Results {
    repetitions: Vec<BTreeMap<String, f64>>,
    missing: Vec<String>,
}

fn check(json: &str) -> Result<(), String> {
    let results: Results =
        serde_json::from_str(json).map_err(|error| format!("the results are not readable: {error}"))?;
    if !results.missing.is_empty() {
        return Err(format!("nothing was measured for: {}", results.missing.join(", ")));
    }
    let [_, second] = &results.repetitions[..] else {
        return Err(format!("{} repetitions instead of 2", results.repetitions.len()));
    };
    if second.is_empty() { Err("the second repetition measured nothing".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_results_are_found() {
        let results = |missing: &str, repetitions: &str| {
            check(&format!(r#"{{"began": "x", "repetitions": {repetitions}, "missing": {missing}}}"#))
        };
        assert_eq!(results("[]", r#"[{"a": 1.5}, {"a": 2}]"#), Ok(()));
        assert_eq!(
            results(r#"["submit"]"#, r#"[{"a": 1}, {"a": 2}]"#),
            Err("nothing was measured for: submit".to_owned())
        );
        for repetitions in ["[]", r#"[{"a": 1}]"#, r#"[{"a": 1}, {}]"#, r#"[{"a": null}, {"a": 1}]"#] {
            assert!(results("[]", repetitions).is_err(), "{repetitions}");
        }
    }
}
