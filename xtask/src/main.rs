//! The project's own tasks, run as `cargo xtask <task>`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is run by hand: what cannot be printed need not go on"
)]

mod bench;
mod gpu;
mod instructions;
mod test;
mod tidy;
mod vendor;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  bench [OPTION…]
        Builds the server and the bench for release and measures the server. The options are those of the
        bench: see `cargo xtask bench --help`.
  test [--filter TEXT] [--skip-install] [--long]
        Installs missing requirements and runs everything: format, tidy, the licences and sources of
        dependencies, clippy, build, Rust tests with a million simulated steps, the search for planted bugs,
        docs, the instructions of the hot paths, and the black-box tests with the official SDKs.
        --filter TEXT   run only the tests whose name contains TEXT, and no other check
        --skip-install  fail if a requirement is missing, instead of installing it
        --long          more kills, power cuts, examples and simulated worlds; takes hours, for a release
  instructions [--write]
        Counts the instructions of the hot paths and compares them with crates/hot-paths/instructions.toml.
        --write         store the counts in that file instead
  gpu [--python PYTHON]
        Runs the tests of workers on a real NVIDIA GPU. They do not run where `nvidia-smi` lists none.
        --python PYTHON  an interpreter with pytest, pytest-timeout, requests, runpod, and PyTorch or CuPy
  tidy
        Checks the dependency arrows, file and function sizes, leftovers, links and plain English. Prints
        one line per finding.
  vendor [--check]
        Downloads the npm packages in crates/console/assets/vendor/VENDOR.md and writes their files.
        --check         compare the files with the packages instead
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["bench", options @ ..] => bench::run(options),
        ["tidy"] => tidy::run(),
        ["gpu"] => gpu::run("python3"),
        ["gpu", "--python", python] => gpu::run(python),
        ["vendor"] => vendor::run(false),
        ["vendor", "--check"] => vendor::run(true),
        ["instructions"] => instructions::run(false),
        ["instructions", "--write"] => instructions::run(true),
        ["test", options @ ..] => test::Options::parse(options).and_then(|options| test::run(&options)),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("unknown task `{}`\n\n{USAGE}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}
