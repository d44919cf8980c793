//! Builds the server and the bench for release, and measures one with the other.

use std::path::PathBuf;
use std::process::Command;

use crate::workspace::{self, Metadata};

/// Options after which nothing is measured, so that nothing needs to be built for it.
const ASKING: [&str; 4] = ["--help", "-h", "--list", "--version"];

/// Runs the bench with these options.
pub fn run(options: &[&str]) -> Result<(), String> {
    let target = Metadata::read()?.target_directory;
    let is_given = options.iter().any(|option| *option == "--server" || option.starts_with("--server="));
    let needs_server = !is_given && !options.iter().any(|option| ASKING.contains(option));
    let mut build = Command::new(workspace::cargo());
    build.args(["build", "--release", "--package", "longshore-bench"]);
    if needs_server {
        build.args(["--package", "longshore-server", "--bin", "longshore", "--bin", "longshore-bench"]);
    }
    succeed(&mut build)?;
    let mut bench = Command::new(target.join("release/longshore-bench"));
    if needs_server {
        bench.arg("--server").arg(target.join("release/longshore"));
    }
    let is_placed = options.iter().any(|option| *option == "--data" || option.starts_with("--data="));
    if !is_placed {
        bench.arg("--data").arg::<PathBuf>(target.join("bench-data"));
    }
    succeed(bench.args(options))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.current_dir(workspace::root()).status();
    let status =
        status.map_err(|error| format!("cannot run {}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("the bench failed ({status})")) }
}
