//! Holds the hot paths to the instructions that are noted for them: slower, or faster, is a reviewed choice.
//!
//! Instructions and not seconds, because they are the same on a busy machine as on an idle one. Each path is run
//! under valgrind once and twice as long; the difference is what going it costs, without the start of the
//! program and what it prepares.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::workspace::{self, Metadata};

/// Where the counts are noted.
const BUDGETS: &str = "crates/hot-paths/instructions.toml";
/// The paths that `longshore-hot-paths` knows.
const PATHS: [&str; 6] = ["submit", "take", "done", "counting", "envelope", "envelope-64k"];
/// How often a path is gone in the shorter of the two runs.
const TIMES: u64 = 128;
/// A count that is further off than this, in percent, must be noted anew.
const TOLERANCE_PERCENT: u64 = 10;

type InstructionCounts = BTreeMap<String, u64>;

/// The file of what is noted.
#[derive(Deserialize)]
struct Budgets {
    compiler: String,
    instructions: InstructionCounts,
}

/// Counts, and compares with what is noted; or notes it.
pub fn run(write: bool) -> Result<(), String> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        println!("instructions are noted for x86-64 Linux, and counted nowhere else");
        return Ok(());
    }
    let counted = count_all()?;
    let compiler = compiler()?;
    let file = workspace::root().join(BUDGETS);
    if write {
        print!("{}", listed(&counted));
        let text = noted(&compiler, &counted);
        return fs::write(&file, text).map_err(|error| format!("cannot write {BUDGETS}: {error}"));
    }
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {BUDGETS}: {error}"))?;
    let noted: Budgets = toml::from_str(&text).map_err(|error| format!("{BUDGETS}: {error}"))?;
    print!("{}", listed(&counted));
    let findings = compare(&noted.instructions, &counted);
    if findings.is_empty() {
        return Ok(());
    }
    let mut text = findings.join("\n");
    let _infallible = write!(
        text,
        "\nfind out why (`valgrind --tool=callgrind`); if it is worth it, note the new counts with \
         `cargo xtask instructions --write` and say in the commit what for"
    );
    if noted.compiler != compiler {
        let _infallible = write!(text, "\nthey were noted with {}, and this is {compiler}", noted.compiler);
    }
    Err(text)
}

/// What the noted counts do not say, one line each.
fn compare(noted: &InstructionCounts, counted: &InstructionCounts) -> Vec<String> {
    let mut findings = Vec::new();
    for (path, &count) in counted {
        let Some(&noted) = noted.get(path) else {
            findings.push(format!("{path}: {count} instructions, and {BUDGETS} has none to compare with"));
            continue;
        };
        let off = count.abs_diff(noted);
        if off * 100 > noted * TOLERANCE_PERCENT {
            let percent = off * 100 / noted.max(1);
            let which = if count > noted { "more" } else { "fewer" };
            findings.push(format!(
                "{path}: {count} instructions, {percent} % {which} than the {noted} in {BUDGETS}"
            ));
        }
    }
    let gone = noted.keys().filter(|path| !counted.contains_key(*path));
    findings.extend(gone.map(|path| format!("{path}: in {BUDGETS}, but there is no such path")));
    findings
}

fn count_all() -> Result<InstructionCounts, String> {
    let mut build = workspace::cargo();
    build.args(["build", "--release", "--package", "longshore-hot-paths"]);
    crate::test::succeed(&mut build)?;
    let program = Metadata::read()?.target_directory.join("release/longshore-hot-paths");
    let count = |path: &&str| {
        let (once, twice) = (total(&program, path, TIMES)?, total(&program, path, 2 * TIMES)?);
        let count = twice.checked_sub(once).ok_or_else(|| format!("`{path}` got shorter by going on"))?;
        Ok(((*path).to_owned(), count / TIMES))
    };
    PATHS.iter().map(count).collect()
}

/// The instructions of a whole run.
fn total(program: &Path, path: &str, times: u64) -> Result<u64, String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let output = valgrind.arg(program).args([path, &times.to_string()]).output();
    let output = output.map_err(|error| format!("cannot run valgrind: {error}; `xtask test` installs it"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let total = output.status.success().then(|| collected(&said)).flatten();
    total.ok_or_else(|| format!("valgrind did not count `{path}` ({}):\n{said}", output.status))
}

/// The number in the line `==123== Collected : 4567`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The compiler's name and version, without the date.
fn compiler() -> Result<String, String> {
    let version = workspace::output(Command::new("rustc").arg("--version"))?;
    Ok(version.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

fn listed(counts: &InstructionCounts) -> String {
    counts.iter().fold(String::new(), |text, (path, count)| text + &format!("    {path:<14} {count:>8}\n"))
}

fn noted(compiler: &str, counts: &InstructionCounts) -> String {
    let mut text = format!(
        "# Instructions of one repetition of each hot path, on x86-64. `cargo xtask test` fails if a count differs by more \
         than\n# {TOLERANCE_PERCENT} %, in either direction. `cargo xtask instructions --write` writes the measured counts.\n\
         compiler = {compiler:?}\n\n[instructions]\n"
    );
    for (path, count) in counts {
        let _infallible = writeln!(text, "{path} = {count}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> InstructionCounts {
        of.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()
    }

    #[test]
    fn a_tenth_more_or_less_passes_and_more_than_that_does_not() {
        let noted = counts(&[("take", 1000)]);
        for close in [900, 1000, 1100] {
            assert_eq!(compare(&noted, &counts(&[("take", close)])), [""; 0]);
        }
        assert_eq!(
            compare(&noted, &counts(&[("take", 1150)])),
            ["take: 1150 instructions, 15 % more than the 1000 in crates/hot-paths/instructions.toml"]
        );
        assert_eq!(
            compare(&noted, &counts(&[("take", 899)])),
            ["take: 899 instructions, 10 % fewer than the 1000 in crates/hot-paths/instructions.toml"]
        );
    }

    #[test]
    fn a_path_without_a_note_and_a_note_without_a_path_are_found() {
        let findings = compare(&counts(&[("walk", 1)]), &counts(&[("take", 1)]));
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("take:") && findings[1].starts_with("walk:"), "{findings:?}");
    }

    #[test]
    fn what_is_noted_can_be_read() {
        let counts = counts(&[("take", 8737), ("envelope-64k", 185_852)]);
        let read: Budgets = toml::from_str(&noted("rustc 1.95.0", &counts)).expect("readable");
        assert_eq!((read.compiler.as_str(), read.instructions), ("rustc 1.95.0", counts));
    }

    #[test]
    fn the_total_is_found_in_what_valgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 20196463\n==7==\n";
        assert_eq!(collected(said), Some(20_196_463));
        assert_eq!(collected("==7== Collected : many\n"), None);
        assert_eq!(collected(""), None);
    }
}
