//! Everything that must hold before a change lands, in the order that fails soonest.

mod dependencies;
mod docker;
mod long;
pub mod tools;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench;
use crate::gpu;
use crate::instructions;
use crate::tidy;
use crate::vendor;
use crate::workspace::{self, Metadata};
use tools::Tools;

/// How many black-box tests run at a time. Most of them wait: with two, each processor is idle half of the time.
const E2E_WORKERS: &str = "4";
/// How many tests in Rust run at a time, for the same reason.
const RUST_THREADS: &str = "4";
/// The value of `LONGSHORE_E2E_STORE` for the few tests that are about what a store keeps.
const SHORT: &str = "postgres-short";
/// How many of these run at a time. Each of more processes would start a PostgreSQL and a server for a few tests.
const SHORT_WORKERS: &str = "2";
/// The package whose tests are a step of their own.
const SIMULATOR: &str = "longshore-sim";
/// What the step `rust tests` tests, without the search for code in the documents, which have none and take minutes.
const TESTED: [&str; 2] = ["--workspace", "--tests"];
/// What a run of all tests leaves to the step `simulator`, which takes a fraction of the time.
const LEFT_OUT: [&str; 2] = ["--exclude", SIMULATOR];
/// What pytest answers when a filter leaves no test.
const PYTEST_NOTHING_COLLECTED: i32 = 5;

/// The parsed options of `cargo xtask test`.
pub struct Options {
    filter: Option<String>,
    skip_install: bool,
    long: bool,
}

impl Options {
    /// Reads the arguments after `test`.
    pub fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self { filter: None, skip_install: false, long: false };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match (*arg, arg.strip_prefix("--filter=")) {
                ("--skip-install", _) => options.skip_install = true,
                ("--long", _) => options.long = true,
                ("--filter", _) => {
                    let text = args.next().ok_or("`--filter` needs a text that the tests' names contain")?;
                    options.filter = Some((*text).to_owned());
                }
                (_, Some(text)) => options.filter = Some(text.to_owned()),
                (other, None) => return Err(format!("unknown option `{other}`; see `cargo xtask help`")),
            }
        }
        Ok(options)
    }
}

/// Runs the steps until one fails.
pub fn run(options: &Options) -> Result<(), String> {
    let steps = match (&options.filter, options.long) {
        (Some(_), _) => 6,
        (None, false) => 16,
        (None, true) => 17,
    };
    let mut report = Report::new(steps);
    let outcome = run_steps(options, &mut report);
    report.print(outcome.is_ok());
    outcome
}

fn run_steps(options: &Options, report: &mut Report) -> Result<(), String> {
    let filter = options.filter.as_deref();
    let tools = report.step("tools", || Tools::ensure(options.skip_install))?;
    if filter.is_none() {
        report.step("format", || cargo(&["fmt", "--all", "--check"]))?;
        report.step("tidy", tidy::run)?;
        let not_run = report.step("dependencies", || dependencies::check(&tools))?;
        report.not_run.extend(not_run);
        report.step("vendored files", || vendor::run(true))?;
        report.step("console types", || {
            succeed(Command::new("e2e/node_modules/.bin/tsc").args(["--project", "crates/console"]))
        })?;
        report.step("clippy", || {
            let lints = ["--", "-D", "warnings"];
            cargo(&[&["clippy", "--workspace", "--all-targets"][..], &lints].concat())?;
            // Of the whole workspace, so that the dependencies are those that were checked before; without the program, which cannot
            // be built with mistakes in it.
            let planted = format!("{SIMULATOR}/planted");
            let others = ["clippy", "--workspace", "--lib", "--bin", SIMULATOR, "--features", &planted];
            cargo(&[&others[..], &lints].concat())
        })?;
    }
    let mut tested = TESTED.to_vec();
    if filter.is_none() {
        tested.extend(LEFT_OUT);
    }
    let programs = report.step("build", || build_all(&tested))?;
    let no_docker = report.step("docker daemon", || docker::check(&tools))?;
    let reason = no_docker.clone().unwrap_or_default();
    report.not_run.extend(no_docker.map(|reason| format!("workers in containers: {reason}")));
    let no_gpu = gpu::reason_not_to_run().unwrap_or_else(|| "run `cargo xtask gpu`".to_owned());
    report.not_run.push(format!("workers on a real GPU: {no_gpu}"));
    report.step("rust tests", || {
        let mut test = workspace::cargo();
        test.args(["test", "--quiet"]).args(&tested).args(filter);
        test.env(docker::REASON, &reason).env("RUST_TEST_THREADS", RUST_THREADS);
        if options.long {
            long::lengthen(&mut test);
        }
        succeed(&mut test)
    })?;
    if filter.is_none() {
        report.step("simulator", || simulator(options))?;
        report.step("docs", || {
            let mut doc = workspace::cargo();
            doc.args(["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"]);
            // The readers are those who work on it: links to private items are welcome, broken ones are not.
            succeed(doc.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links"))
        })?;
        report.step("instructions", || instructions::run(false))?;
        report.step("bench", || bench::smoke(&programs))?;
        if options.long {
            report.step("worlds", || long::worlds().iter().try_for_each(|worlds| cargo(worlds)))?;
        }
    }
    report.step("black-box tests", || pytest(&tools, &programs.server, options, &reason, ""))?;
    let store = if options.long { "postgres" } else { SHORT };
    report.step("black-box tests over PostgreSQL", || {
        pytest(&tools, &programs.server, options, &reason, store)
    })?;
    Ok(())
}

/// Runs the tests of the simulator, in a profile that is fast and checks what the compiler can. Its build is one of its own,
/// because mistakes can be planted in it. A test that plants none runs the code of the server as it is.
fn simulator(options: &Options) -> Result<(), String> {
    let mut test = workspace::cargo();
    test.args([
        "test",
        "--profile",
        "sim",
        "--package",
        SIMULATOR,
        "--features",
        "planted",
        "--quiet",
        "--tests",
    ]);
    if options.long {
        long::lengthen(&mut test);
    }
    succeed(&mut test)
}

/// Programs for the later steps.
pub struct Programs {
    pub server: PathBuf,
    pub bench: PathBuf,
}

/// Builds the tests in Rust and the programs of the workspace in one run of cargo, so that each dependency is compiled once.
fn build_all(tested: &[&str]) -> Result<Programs, String> {
    cargo(&[&["build", "--bins"], tested].concat())?;
    let folder = Metadata::read()?.target_directory.join("debug");
    Ok(Programs { server: folder.join("longshore"), bench: folder.join("longshore-bench") })
}

/// Builds the program that the black-box tests run; answers where it is.
pub fn build() -> Result<PathBuf, String> {
    cargo(&["build", "--package", "longshore-server", "--bin", "longshore"])?;
    Ok(Metadata::read()?.target_directory.join("debug/longshore"))
}

/// Runs the black-box tests. `no_docker`: why no Docker daemon can run here; empty if one can. `store`: where the servers keep their
/// rows; empty for their data directories, `postgres` for the tests that are about jobs over PostgreSQL, and `postgres-short` for
/// those of them that are about what a store keeps.
fn pytest(
    tools: &Tools,
    binary: &Path,
    options: &Options,
    no_docker: &str,
    store: &str,
) -> Result<(), String> {
    let filter = options.filter.as_deref();
    let mut pytest = tools.python();
    let workers = if store == SHORT { SHORT_WORKERS } else { E2E_WORKERS };
    pytest.args(["-m", "pytest", "-q", "-n", workers, "--durations=10", "e2e"]);
    pytest.env("LONGSHORE_BIN", binary).env(docker::REASON, no_docker).env("LONGSHORE_E2E_STORE", store);
    if let Some(filter) = filter {
        pytest.args(["-k", filter]);
    }
    if options.long {
        long::lengthen(&mut pytest);
    }
    let status = pytest.current_dir(workspace::root()).status();
    let status = status.map_err(|error| format!("cannot run pytest: {error}"))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(PYTEST_NOTHING_COLLECTED) if filter.is_some() => Ok(()),
        _ => Err(format!("pytest failed ({status})")),
    }
}

fn cargo(args: &[&str]) -> Result<(), String> {
    succeed(workspace::cargo().args(args))
}

/// Runs a program in the workspace's folder, its output going where ours goes.
pub fn succeed(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    let status = command.current_dir(workspace::root()).status();
    let status = status.map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}` failed ({status})")) }
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// What was done and how long it took.
struct Report {
    steps: Vec<(&'static str, Duration)>,
    /// Checks that this machine could not run, and why.
    not_run: Vec<String>,
    total: usize,
    began: Instant,
}

impl Report {
    fn new(total: usize) -> Self {
        Self { steps: Vec::new(), not_run: Vec::new(), total, began: Instant::now() }
    }

    fn step<T>(&mut self, name: &'static str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        println!("==> {}/{} {name}", self.steps.len() + 1, self.total);
        let began = Instant::now();
        let outcome = work();
        self.steps.push((name, began.elapsed()));
        outcome.map_err(|text| format!("{name}: {text}"))
    }

    fn print(&self, passed: bool) {
        println!();
        for (at, (name, took)) in self.steps.iter().enumerate() {
            let failed = !passed && at + 1 == self.steps.len();
            println!("{}  {name:<16} {:>7.1} s", if failed { "FAIL" } else { "  ok" }, took.as_secs_f64());
        }
        let passed_steps = self.steps.len() - usize::from(!passed);
        let took = self.began.elapsed().as_secs_f64();
        for check in &self.not_run {
            println!("NOT RUN  {check}");
        }
        let not_run = self.not_run.len();
        println!(
            "xtask test: {passed_steps} of {} steps passed in {took:.0} s, {not_run} not run",
            self.total
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_both_spellings() {
        let options = Options::parse(&["--filter", "cancel", "--skip-install"]).expect("options");
        assert_eq!((options.filter.as_deref(), options.skip_install), (Some("cancel"), true));
        let options = Options::parse(&["--filter=take"]).expect("options");
        assert_eq!((options.filter.as_deref(), options.skip_install), (Some("take"), false));
        assert!(!options.long);
        assert!(Options::parse(&["--long"]).expect("options").long);
        assert!(Options::parse(&["--filter"]).is_err());
        assert!(Options::parse(&["--fast"]).is_err());
    }

    #[test]
    fn a_failed_step_is_named_and_ends_the_report() {
        let mut report = Report::new(2);
        assert_eq!(report.step("one", || Ok(7)), Ok(7));
        assert_eq!(report.step("two", || Err::<(), _>("broke".to_owned())), Err("two: broke".to_owned()));
        assert_eq!(report.steps.len(), 2);
    }
}
